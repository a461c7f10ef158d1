use std::sync::atomic::Ordering;

use futures::future::join_all;
use parking_lot::{Condvar, Mutex};

use super::super::record::tests::{claim, unauthenticated};
use super::*;
use placement_base::world::RealWorld;

/// A disk whose state a test controls.
#[derive(Default)]
struct Disk {
    holds: Mutex<Holds>,
    changed: Condvar,
}

#[derive(Default)]
struct Holds {
    written: Vec<u8>,
    synced: String,
    syncs: usize,
    is_full: bool,
    loses_one_sync: bool,
    write_hangs: bool,
    sync_hangs: bool,
}

impl Disk {
    fn set(&self, change: impl FnOnce(&mut Holds)) {
        change(&mut self.holds.lock());
        self.changed.notify_all();
    }

    fn synced(&self) -> usize {
        self.holds.lock().synced.lines().count()
    }
}

struct OnDisk(Arc<Disk>);

impl Sink for OnDisk {
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        let mut holds = self.0.holds.lock();
        (self.0.changed).wait_while(&mut holds, |holds| holds.write_hangs);
        if holds.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        holds.written.append(lines);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut holds = self.0.holds.lock();
        (self.0.changed).wait_while(&mut holds, |holds| holds.sync_hangs);
        holds.syncs += 1;
        let written = std::mem::take(&mut holds.written);
        if std::mem::take(&mut holds.loses_one_sync) {
            return Err(io::Error::other("the disk lost the data"));
        }
        let text = String::from_utf8(written).unwrap();
        holds.synced.push_str(&text);
        Ok(())
    }
}

fn audit(disk: &Arc<Disk>, mode: AuditMode) -> Audit {
    let sink = Box::new(OnDisk(disk.clone()));
    Audit::begin(sink, 1, Arc::new(RealWorld::default()), mode).unwrap()
}

async fn until(what: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition was not met in time");
}

#[tokio::test]
async fn write_is_acknowledged_after_a_shared_sync_of_its_record() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    disk.set(|disk| disk.sync_hangs = true);
    let mut kept = join_all((0..50).map(|_| audit.keep(claim())));
    let early = timeout(Duration::from_millis(100), &mut kept).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(disk.synced(), 0);
    disk.set(|disk| disk.sync_hangs = false);
    assert_eq!(kept.await, [true; 50]);
    assert_eq!(disk.synced(), 50);
    let syncs = disk.holds.lock().syncs;
    assert!(syncs <= 3, "{syncs} syncs");
}

#[tokio::test]
async fn refused_request_does_not_wait_for_the_disk() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    disk.set(|disk| disk.is_full = true);
    assert!(audit.keep(unauthenticated()).await);
}

#[tokio::test]
async fn writes_are_refused_while_the_disk_is_full_and_recorded_later() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    disk.set(|disk| disk.is_full = true);
    assert_eq!(audit.why_not(), None, "no write was attempted yet");
    assert!(!audit.keep(claim()).await);
    assert!(audit.why_not().unwrap().contains("cannot be written"));
    disk.set(|disk| disk.is_full = false);
    until(|| audit.why_not().is_none()).await;
    assert_eq!(disk.synced(), 1, "the record of the unacknowledged write");
    assert!(audit.keep(claim()).await);
    let numbers = audit.numbers();
    assert_eq!(numbers.records.load(Ordering::Relaxed), 2);
    assert_eq!(numbers.lost.load(Ordering::Relaxed), 0);
    let bytes = disk.holds.lock().synced.len() as u64;
    assert_eq!(numbers.bytes.load(Ordering::Relaxed), bytes);
}

#[tokio::test]
async fn writes_are_refused_while_the_disk_hangs() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    disk.set(|disk| disk.sync_hangs = true);
    assert!(!audit.keep(claim()).await);
    until(|| audit.why_not().is_some()).await;
    assert!(audit.why_not().unwrap().contains("does not answer"));
    disk.set(|disk| disk.sync_hangs = false);
    until(|| audit.why_not().is_none()).await;
}

#[tokio::test]
async fn best_effort_counts_lost_records() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::BestEffort);
    disk.set(|disk| disk.write_hangs = true);
    assert!(audit.keep(claim()).await);
    assert_eq!(audit.why_not(), None);
    for _ in 0..20_000 {
        audit.put(claim());
    }
    let lost = audit.numbers().lost.load(Ordering::Relaxed);
    assert!((10_000..20_000).contains(&lost), "{lost}");
    disk.set(|disk| disk.write_hangs = false);
    let written = || audit.numbers().records.load(Ordering::Relaxed);
    until(|| written() + lost == 20_001).await;
}

#[tokio::test]
async fn refused_requests_leave_room_for_writes() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    disk.set(|disk| disk.write_hangs = true);
    for _ in 0..20_000 {
        audit.put(unauthenticated());
    }
    audit.put(claim());
    let lost = audit.numbers().lost.load(Ordering::Relaxed);
    disk.set(|disk| disk.write_hangs = false);
    assert!(audit.keep(claim()).await);
    let holds = disk.holds.lock();
    let claims = holds.synced.matches("\"committed\"").count();
    assert_eq!(claims, 2);
    assert_eq!(holds.synced.lines().count() as u64 + lost, 20_002);
}

#[tokio::test]
async fn records_lost_by_a_sync_are_written_again() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    disk.set(|disk| disk.loses_one_sync = true);
    assert!(audit.keep(claim()).await);
    let syncs = disk.holds.lock().syncs;
    assert_eq!((disk.synced(), syncs), (1, 2));
}

#[tokio::test]
async fn shutdown_waits_for_records() {
    let disk = Arc::new(Disk::default());
    let audit = audit(&disk, AuditMode::Strict);
    for _ in 0..500 {
        audit.put(unauthenticated());
    }
    audit.finish().await;
    let written = audit.numbers().records.load(Ordering::Relaxed);
    assert_eq!(written, 500);
}
