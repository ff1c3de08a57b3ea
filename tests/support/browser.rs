//! A real browser: Debian's chromium without a window, told what to do by the DevTools protocol
//! over a pipe (messages are JSON, each ended by a NUL).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use super::{announce, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// A browser with one page. It ends when its pipe is closed, so also when the test is killed.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    asked: u64,
    session: String,
    /// Addresses that the page asked for.
    requests: Vec<String>,
    /// Errors that the page wrote to its console.
    errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// `None` where no browser is installed: the test is skipped, and says so; under CI=true it fails.
    pub fn start() -> Option<Self> {
        let Some(program) = installed() else {
            let why = "no chromium on PATH (Debian: apt-get install --no-install-recommends chromium fonts-dejavu-core)";
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}");
            announce(&format!("skipped: {why}"));
            return None;
        };
        let profile = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sh");
        // The browser reads from descriptor 3 and writes to 4; a sandbox is not to be had as root.
        let line = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        command.args(["-c", line]).arg(program).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            &format!("--user-data-dir={}", profile.path().display()),
        ]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let input = child.stdin.take().expect("its input");
        let output = child.stdout.take().expect("its output");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let Some(message) = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) else {
                    return;
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            asked: 0,
            session: String::new(),
            requests: Vec::new(),
            errors: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// One command; fails the test where the browser refuses it.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let answer = self.messages.recv_timeout(CAP).expect("the browser answers");
            if answer["id"] == self.asked {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.hear(&answer);
        }
    }

    fn hear(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                self.requests.push(parameters["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            Some("Runtime.exceptionThrown") => self.errors.push(parameters.to_string()),
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.errors.push(parameters.to_string());
            }
            _ => {}
        }
    }

    /// A window of that size, on a phone where it is narrow.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// `dark` or `light`, as the user's system says.
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
    }

    /// What an expression comes to in the page.
    #[track_caller]
    pub fn ask(&mut self, expression: &str) -> Value {
        let wanted = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn await_true(&mut self, expression: &str) {
        wait_until(&format!("the page says {expression}"), CAP, || match self.ask(expression) {
            Value::Bool(true) => Ok(()),
            other => Err(format!("{other}; the page: {}", self.ask("document.body.innerText"))),
        });
    }

    /// Writes what is seen into `target/screens/`, for people.
    pub fn screenshot(&mut self, name: &str) {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let png = base64::engine::general_purpose::STANDARD
            .decode(answer["data"].as_str().expect("a picture"))
            .expect("base64");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screens");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), png).expect("a file");
    }

    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    pub fn errors(&self) -> &[String] {
        &self.errors
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    places.find(|program| program.is_file())
}
