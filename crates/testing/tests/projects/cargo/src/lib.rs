#[cfg(test)]
mod tests {
    #[test]
    fn passes() {}

    #[test]
    fn fails() {
        assert_eq!(1 + 1, 3);
    }

    #[test]
    #[ignore = "not today"]
    fn is_skipped() {}

    #[test]
    fn misbehaves() {
        match std::env::var("MISBEHAVE").as_deref() {
            Ok("crash") => std::process::abort(),
            Ok("hang") => std::thread::sleep(std::time::Duration::from_secs(3600)),
            _ => {}
        }
    }
}
