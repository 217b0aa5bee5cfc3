//! Telling file systems on which SQLite's locks do not hold from those on which they do.

use std::path::Path;

/// Remote file systems that the kernel itself knows: `statfs(2)` names them by these numbers.
#[cfg(target_os = "linux")]
const REMOTE: [(u64, &str); 7] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x5346_414f, "afs"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
];
#[cfg(target_os = "linux")]
const FUSE: u64 = 0x6573_5546;
/// What runs behind FUSE is named in the table of mounts only. Local ones are fine.
const REMOTE_FUSE: [&str; 6] =
    ["fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.davfs", "fuse.curlftpfs"];

/// The kind of network file system that a directory is on, if it is on one.
#[cfg(target_os = "linux")]
pub(super) fn kind_of(directory: &Path) -> std::io::Result<Option<String>> {
    // The type of `f_type` differs between platforms; the magic numbers have 32 bits on all of them.
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "signed on some platforms, unsigned on others"
    )]
    let magic = rustix::fs::statfs(directory)?.f_type as u64 & 0xffff_ffff;
    if magic == FUSE {
        let device = rustix::fs::stat(directory)?.st_dev;
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        return Ok(remote_fuse(&mounts, &device).map(str::to_owned));
    }
    Ok(REMOTE.iter().find(|(number, _)| *number == magic).map(|(_, name)| (*name).to_owned()))
}

/// Elsewhere nobody can be asked; SQLite's own errors have to do.
#[cfg(not(target_os = "linux"))]
pub(super) fn kind_of(_directory: &Path) -> std::io::Result<Option<String>> {
    Ok(None)
}

/// Looks a device up in `/proc/self/mountinfo`: `36 35 0:45 / /mnt rw - fuse.sshfs host:/ rw`.
fn remote_fuse<'a>(mounts: &'a str, device: &str) -> Option<&'a str> {
    mounts
        .lines()
        .filter(|line| line.split(' ').nth(2) == Some(device))
        .filter_map(|line| line.split_once(" - ")?.1.split(' ').next())
        .find(|kind| REMOTE_FUSE.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_over_ssh_is_told_from_a_local_one() {
        let mounts = "\
            22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            90 22 0:45 / /home/me/remote rw,nosuid shared:2 - fuse.sshfs me@host: rw,user_id=1000\n\
            91 22 0:46 / /home/me/disk rw - fuseblk /dev/sdb1 rw\n";
        assert_eq!(remote_fuse(mounts, "0:45"), Some("fuse.sshfs"));
        assert_eq!(remote_fuse(mounts, "0:46"), None);
        assert_eq!(remote_fuse(mounts, "0:99"), None);
    }
}
