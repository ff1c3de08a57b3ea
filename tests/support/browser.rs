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
        // Else only a window in front may write to it.
        let permissions = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        browser.call("Browser.grantPermissions", permissions);
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
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

    /// Goes to an address, and waits until its page is there.
    #[track_caller]
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        wait_until(&format!("{url} is loaded"), CAP, || {
            match self.ask("document.readyState + ' ' + location.href") {
                Value::String(at) if at == format!("complete {url}") => Ok(()),
                other => Err(other.to_string()),
            }
        });
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

    /// Presses a key where the focus is, as a person does.
    pub fn press(&mut self, key: &str) {
        let (text, code) = match key {
            "Enter" => ("\r", 13),
            "Tab" => ("", 9),
            "Escape" => ("", 27),
            "ArrowLeft" => ("", 37),
            "ArrowUp" => ("", 38),
            "ArrowRight" => ("", 39),
            "ArrowDown" => ("", 40),
            other => panic!("the key {other} is not known here"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// What a screen reader finds: `role: name` of each node that has both.
    pub fn accessible(&mut self) -> Vec<String> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        let text = |node: &Value, field: &str| node[field]["value"].as_str().unwrap_or_default().to_owned();
        let told = nodes.iter().filter(|node| node["ignored"] != true);
        told.map(|node| format!("{}: {}", text(node, "role"), text(node, "name"))).collect()
    }

    /// The whole page as a PNG, also what is outside of the window.
    pub fn picture(&mut self) -> Vec<u8> {
        let metrics = self.call("Page.getLayoutMetrics", json!({}));
        let size = &metrics["cssContentSize"];
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let wanted = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", wanted);
        let text = answer["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
    }

    /// Writes the page into `target/screens/`, for people.
    pub fn screenshot(&mut self, name: &str) {
        let png = self.picture();
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
