use rehearsal_sandbox::*;
use std::time::Instant;
fn main() {
    let dir = "/work/wt/sandbox/crates/sandbox";
    let mut policy = Policy::new(dir);
    policy.home = Some("/root".into());
    if std::env::args().nth(1).as_deref() == Some("nogroup") { policy.limits.memory=None; policy.limits.cpus=None; policy.limits.processes=None; }
    let t = Instant::now();
    let s = Sandbox::prepare(&policy).unwrap();
    println!("prepare {:?}", t.elapsed());
    println!("{:?} missing {:?}", s.report().rung, s.report().missing());
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut ours = vec![]; let mut plain = vec![]; let mut spawn=vec![]; let mut bw=vec![];
    for _ in 0..std::env::var("N").map_or(200,|n|n.parse().unwrap()) {
        let t = Instant::now();
        let mut c = s.spawn(Command::new("/bin/true", dir)).unwrap();
        spawn.push(t.elapsed());
        let e = rt.block_on(c.wait());
        assert!(e.is_success());
        drop(c);
        ours.push(t.elapsed());
        let t = Instant::now();
        std::process::Command::new("/bin/true").status().unwrap();
        plain.push(t.elapsed());
        let t = Instant::now();
        std::process::Command::new("bwrap").args("--unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp /bin/true".split(' ')).status().unwrap();
        bw.push(t.elapsed());
    }
    for (n, mut v) in [("plain", plain), ("ours", ours), ("spawn", spawn),("bwrap",bw)] { v.sort(); println!("{n}: min {:?} median {:?} p90 {:?}", v[0], v[v.len()/2], v[v.len()*9/10]); }
}
