//! The record proxy before a vendor that is reached by HTTPS: one on loopback, whose certificate is its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::env::TestEnv;
use crate::stage::{ASKED, OpenStage};

/// Answers every request with the same words.
const VENDOR: &str = r#"
import http.server, ssl, sys

ANSWER = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello from afar."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}'

class Vendor(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

struct Vendor {
    process: Child,
    url: String,
}

impl Vendor {
    /// None where the programs are missing that play it, which is said aloud.
    fn start(env: &TestEnv) -> Option<Self> {
        if !(env.has_tool("openssl") && env.has_tool("python3")) {
            return None;
        }
        let made = env
            .command("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-keyout", "key.pem", "-out", "cert.pem", "-days", "30", "-subj", "/CN=localhost"])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        env.file("vendor.py", VENDOR);
        let mut process = env.command("python3").arg("vendor.py").stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Some(Self { process, url: format!("https://localhost:{}", port.trim()) })
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_vendor_whose_certificate_is_trusted_is_recorded() {
    let env = TestEnv::without_repository();
    let Some(vendor) = Vendor::start(&env) else { return };
    let certificate = env.repo.join("cert.pem");
    let env = env.var("SSL_CERT_FILE", certificate.as_str());
    let stage = OpenStage::start(&env, &["--record", "greeting.jsonl", "--upstream", &vendor.url]);
    let (status, body) = stage.ask("/v1/messages", ASKED);
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("Hello from afar."), "{body}");
    let (_, output) = stage.close();
    assert_eq!(output.code, 0, "{output}");
    assert!(env.read("greeting.jsonl").contains("Hello from afar."));
}

#[test]
fn a_vendor_whose_certificate_nobody_vouches_for_is_not_believed() {
    let env = TestEnv::without_repository();
    let Some(vendor) = Vendor::start(&env) else { return };
    let stage = OpenStage::start(&env, &["--record", "greeting.jsonl", "--upstream", &vendor.url]);
    let (status, body) = stage.ask("/v1/messages", ASKED);
    assert_ne!(status, 200, "{body}");
    assert!(!body.contains("Hello from afar."), "{body}");
    let (told, output) = stage.close();
    assert_ne!(output.code, 0, "{output}");
    assert!(told["error"]["message"].as_str().unwrap().contains("certificate"), "{told:#}");
    assert!(!env.repo.join("greeting.jsonl").exists());
}
