//! What is assumed of Kong, held against a real one: the same questions as to the fake.
//!
//! `INTERLOCK_KONG` is a command that runs Kong in the foreground with the variables of its
//! environment, for example `docker run --rm --network=host -e KONG_DATABASE -e KONG_ROUTER_FLAVOR
//! -e KONG_PROXY_LISTEN -e KONG_ADMIN_LISTEN -e KONG_STATUS_LISTEN kong:3.9`.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_kong::{exchange, takes};
use crate::support::{free_port, process, skipped, wait_until};

const CAP: Duration = Duration::from_secs(120);

#[test]
fn a_real_kong_answers_as_the_fake_does() {
    let Some(command) = std::env::var("INTERLOCK_KONG").ok().filter(|command| !command.is_empty()) else {
        skipped("INTERLOCK_KONG names no command that runs Kong");
        return;
    };
    for flavor in ["traditional", "traditional_compatible", "expressions"] {
        let [proxy, admin, status] = [free_port(), free_port(), free_port()];
        let mut kong = Command::new("sh");
        kong.args(["-c", &command])
            .env("KONG_DATABASE", "off")
            .env("KONG_ROUTER_FLAVOR", flavor)
            .env("KONG_PROXY_LISTEN", format!("127.0.0.1:{proxy}"))
            .env("KONG_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
            .env("KONG_STATUS_LISTEN", format!("127.0.0.1:{status}"));
        let mut kong = process::spawn(kong).expect("sh runs");
        let get = |port, path: &str| exchange("127.0.0.1", port, &format!("GET {path} HTTP/1.0\r\n\r\n"));
        let root = wait_until("Kong answers", CAP, || match get(admin, "/") {
            Some((200, root)) => Ok(root),
            other => Err(format!("{other:?}")),
        });
        assert_eq!(root["configuration"]["router_flavor"], flavor);
        let version = root["version"].as_str().expect("a version").to_owned();
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        assert_eq!(get(status, "/status").map(|(code, _)| code), Some(200));
        assert_eq!(
            get(status, "/status/ready").map(|(code, _)| code),
            Some(503),
            "it has no configuration yet"
        );
        for routes in questions() {
            let routes = json!([routes]);
            let body = json!({"_format_version": "3.0", "services": [{"name": "s", "host": "localhost", "routes": routes}]});
            let body = body.to_string();
            let head = format!(
                "POST /config HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let (code, answer) =
                exchange("127.0.0.1", admin, &format!("{head}{body}")).expect("Kong answers");
            let wanted = takes(flavor, version, &routes[0]);
            assert_eq!(code < 300, wanted.is_none(), "{flavor} {version:?} {routes}: {wanted:?}, {answer}");
        }
        process::signal(kong.id(), "TERM");
        let _ = kong.wait();
    }
}

fn questions() -> [Value; 3] {
    let expression = "http.path == \"/a\"";
    [
        json!({"paths": ["/a"]}),
        json!({"expression": expression, "priority": 1}),
        json!({"expression": expression, "paths": ["/a"]}),
    ]
}
