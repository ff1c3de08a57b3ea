//! Reads a file of a running container: `cat` in it, by a WebSocket of the API server (`pods/exec`).

use std::time::Duration;

use futures::StreamExt as _;
use http::Request;
use interlock_core::effect::{ApiFailure, FileRead, MAX_FILE, PodFile};
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::path;
use super::requests::{failure, local};

/// How long reading a file may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Most bytes that are kept of what the command says about an error.
const SAID: usize = 253;

/// Channels of the protocol, the first byte of each message (`k8s.io/apimachinery/pkg/util/remotecommand`).
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

/// Reads a file, as `user` where the client impersonates one.
pub async fn read_file(client: &Client, user: Option<&str>, file: &PodFile) -> FileRead {
    match tokio::time::timeout(LIMIT, read(client, user, file)).await {
        Ok(read) => read,
        Err(_) => FileRead::Failed(local(format!(
            "reading {} of pod {} took longer than {} s",
            file.path,
            file.pod.name,
            LIMIT.as_secs()
        ))),
    }
}

async fn read(client: &Client, user: Option<&str>, file: &PodFile) -> FileRead {
    let request = match request(user, file) {
        Ok(request) => request,
        Err(failure) => return FileRead::Failed(failure),
    };
    let mut messages = match client.connect(request).await {
        Ok(connection) => connection.into_stream(),
        Err(error) => return FileRead::Failed(failure(&error)),
    };
    let mut output = Output::default();
    loop {
        let message = match messages.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return FileRead::Failed(local(format!("reading {}: {error}", file.path))),
            None => break,
        };
        if message.is_binary()
            && let Some(read) = output.take(&message.into_data())
        {
            return read;
        }
    }
    FileRead::Failed(local(format!("the connection that reads {} ended before the file did", file.path)))
}

fn request(user: Option<&str>, file: &PodFile) -> Result<Request<Vec<u8>>, ApiFailure> {
    let pod = path::of("v1", file.pod.namespace.as_deref(), "pods", &[&file.pod.name, "exec"])?;
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    // Without a terminal: it would change line ends.
    let query = format!(
        "container={}&command=cat&command={}&stdout=true&stderr=true&tty=false",
        encoded(&file.container),
        encoded(&file.path)
    );
    let mut request = Request::get(format!("{pod}?{query}"));
    if let Some(user) = user {
        request = request.header("Impersonate-User", user);
    }
    request.body(Vec::new()).map_err(|error| local(error.to_string()))
}

/// What the command has written so far.
#[derive(Default)]
struct Output {
    content: Vec<u8>,
    said: Vec<u8>,
}

impl Output {
    /// Takes one message; returns the result when it is known.
    fn take(&mut self, message: &[u8]) -> Option<FileRead> {
        let (channel, data) = message.split_first()?;
        match *channel {
            STDOUT if self.content.len() + data.len() > MAX_FILE => return Some(FileRead::TooLarge),
            STDOUT => self.content.extend_from_slice(data),
            STDERR => {
                let room = SAID.saturating_sub(self.said.len());
                self.said.extend_from_slice(&data[..data.len().min(room)]);
            }
            STATUS => return Some(self.ended(data)),
            _ => {}
        }
        None
    }

    /// The result, by the Status that ends the output.
    fn ended(&mut self, status: &[u8]) -> FileRead {
        let status: Value = serde_json::from_slice(status).unwrap_or_default();
        if status["status"] == "Success" {
            return FileRead::Content(std::mem::take(&mut self.content).into());
        }
        let message = status["message"].as_str().unwrap_or("the command ended with an error").to_owned();
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        let mut codes = causes.filter(|cause| cause["reason"] == "ExitCode");
        match codes.find_map(|cause| cause["message"].as_str()?.parse().ok()) {
            Some(code) => {
                let said = String::from_utf8_lossy(&self.said).trim().replace(['\n', '\r'], " ");
                FileRead::Ended { code, said }
            }
            // It did not run.
            None => FileRead::Failed(local(message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn framed(channel: u8, data: &[u8]) -> Vec<u8> {
        [&[channel], data].concat()
    }

    fn ended(status: &Value) -> Vec<u8> {
        framed(STATUS, status.to_string().as_bytes())
    }

    fn read(messages: &[Vec<u8>]) -> Option<FileRead> {
        let mut output = Output::default();
        messages.iter().find_map(|message| output.take(message))
    }

    #[test]
    fn the_content_is_whole_when_the_command_succeeded() {
        let success = json!({"metadata": {}, "status": "Success"});
        let messages =
            [framed(STDOUT, b"a\r\n"), framed(STDERR, b"warning"), framed(STDOUT, b"b"), ended(&success)];
        assert_eq!(read(&messages[..3]), None);
        assert_eq!(read(&messages), Some(FileRead::Content(b"a\r\nb".as_slice().into())));
        assert_eq!(read(&[Vec::new(), ended(&success)]), Some(FileRead::Content([].into())));
    }

    #[rstest]
    #[case::missing(
        json!({"status": "Failure", "reason": "NonZeroExitCode", "message": "exit code 1",
               "details": {"causes": [{"reason": "ExitCode", "message": "1"}]}}),
        FileRead::Ended { code: 1, said: "cat: no such  file".to_owned() }
    )]
    #[case::not_run(json!({"status": "Failure", "message": "no cat"}), FileRead::Failed(local("no cat".to_owned())))]
    #[case::unreadable(json!("x"), FileRead::Failed(local("the command ended with an error".to_owned())))]
    fn what_went_wrong_is_told(#[case] status: Value, #[case] expected: FileRead) {
        assert_eq!(read(&[framed(STDERR, b"cat: no such\r\nfile\n"), ended(&status)]), Some(expected));
    }

    #[test]
    fn a_file_over_the_limit_is_not_kept() {
        let half = framed(STDOUT, &vec![b'x'; MAX_FILE / 2 + 1]);
        assert_eq!(read(&[half.clone(), half]), Some(FileRead::TooLarge));
        let said = vec![framed(STDERR, &[b'x'; 300]); 2];
        let status =
            json!({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "2"}]}});
        let Some(FileRead::Ended { said, .. }) = read(&[said, vec![ended(&status)]].concat()) else {
            panic!("it ended")
        };
        assert_eq!(said.len(), SAID);
    }
}
