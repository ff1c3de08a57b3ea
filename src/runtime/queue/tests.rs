use super::*;

#[tokio::test(start_paused = true)]
async fn a_key_is_in_work_once_and_comes_again_when_added_meanwhile() {
    let queue = Queue::default();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    assert_eq!(queue.depth(), 0);
    queue.add("a");
    assert!(tokio::time::timeout(Duration::from_secs(1), queue.next()).await.is_err());
    queue.done(&"a");
    assert_eq!(queue.next().await, "a");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_due_time_wins() {
    let queue = Queue::default();
    queue.add_after("a", Duration::from_secs(60));
    queue.add_after("a", Duration::from_secs(1));
    queue.add_after("a", Duration::from_secs(30));
    let start = Instant::now();
    assert_eq!(queue.next().await, "a");
    assert_eq!(start.elapsed().as_secs(), 1);
    assert_eq!(queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_each_time_until_forgotten() {
    let queue = Queue::default();
    let mut waits = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        queue.retry("a");
        queue.next().await;
        queue.done(&"a");
        waits.push(start.elapsed());
    }
    assert!(waits[0] < waits[1] && waits[1] < waits[2], "{waits:?}");
    queue.forget(&"a");
    let start = Instant::now();
    queue.retry("a");
    queue.next().await;
    assert!(start.elapsed() <= waits[0] + Duration::from_millis(2));
}

/// A key in work, however often it failed, comes back at its deadline.
#[tokio::test(start_paused = true)]
async fn a_deadline_comes_before_a_long_back_off() {
    let queue = Queue::default();
    queue.add("a");
    for _ in 0..10 {
        queue.next().await;
        queue.retry("a");
        queue.done(&"a");
    }
    queue.next().await;
    queue.add_after("a", Duration::from_secs(30));
    queue.retry("a");
    queue.done(&"a");
    let start = Instant::now();
    assert_eq!(queue.next().await, "a");
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn two_workers_get_two_keys() {
    let queue = std::sync::Arc::new(Queue::default());
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.add(1);
    queue.add(2);
    let mut got = Vec::new();
    for task in tasks {
        got.push(task.await.unwrap());
    }
    got.sort_unstable();
    assert_eq!(got, [1, 2]);
}

/// Keys with a letter share a fairness group of two slots.
fn lettered(key: &(&'static str, u32)) -> Option<FairnessGroup> {
    (!key.0.is_empty()).then(|| FairnessGroup { name: key.0.to_owned(), share: 2 })
}

async fn took(queue: &Queue<(&'static str, u32)>) -> Option<(&'static str, u32)> {
    tokio::time::timeout(Duration::from_secs(1), queue.next_in(lettered)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_full_lane_let_others_pass_and_follow_in_order() {
    let queue = Queue::default();
    for key in [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("", 1)] {
        queue.add(key);
    }
    for key in [("a", 1), ("a", 2), ("b", 1), ("", 1)] {
        assert_eq!(took(&queue).await, Some(key));
    }
    assert_eq!((took(&queue).await, queue.depth()), (None, 2));
    // Already parked: no change.
    queue.add(("a", 4));
    queue.done(&("b", 1));
    assert_eq!((took(&queue).await, queue.depth()), (None, 2));
    queue.done(&("a", 2));
    assert_eq!(took(&queue).await, Some(("a", 3)));
    queue.done(&("a", 3));
    queue.done(&("a", 1));
    assert_eq!(took(&queue).await, Some(("a", 4)));
    queue.done(&("a", 4));
    assert!(queue.state().lanes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_given_away_is_taken_once() {
    let queue = Queue::default();
    for key in [("a", 1), ("a", 2), ("a", 3), ("a", 4)] {
        queue.add(key);
    }
    assert_eq!(
        (took(&queue).await, took(&queue).await, took(&queue).await),
        (Some(("a", 1)), Some(("a", 2)), None)
    );
    queue.give_place(&("a", 1));
    queue.give_place(&("a", 1));
    assert_eq!((took(&queue).await, took(&queue).await), (Some(("a", 3)), None));
    queue.done(&("a", 1));
    assert_eq!(took(&queue).await, None);
    queue.done(&("a", 2));
    assert_eq!(took(&queue).await, Some(("a", 4)));
    queue.done(&("a", 3));
    queue.done(&("a", 4));
    assert!(queue.state().lanes.is_empty() && queue.state().working.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_handed_a_place_and_has_left_the_lane_hands_it_on() {
    let queue = Queue::default();
    (1..=5).for_each(|key| queue.add(key));
    let all = |_: &u32| Some(FairnessGroup { name: "all".to_owned(), share: 1 });
    let but_the_second = |key: &u32| all(key).filter(|_| *key != 2);
    assert_eq!(queue.next_in(all).await, 1);
    assert!(tokio::time::timeout(Duration::from_secs(1), queue.next_in(all)).await.is_err());
    queue.done(&1);
    assert_eq!(queue.next_in(but_the_second).await, 2);
    for key in 3..=5 {
        assert_eq!(queue.next_in(but_the_second).await, key);
        assert!(tokio::time::timeout(Duration::from_secs(1), queue.next_in(all)).await.is_err());
        queue.done(&key);
    }
    queue.done(&2);
    assert_eq!(queue.depth(), 0);
    assert!(queue.state().lanes.is_empty() && queue.state().held.is_empty());
}

proptest::proptest! {
    /// For every order of additions and completions: no group exceeds its share, and every added key gets
    /// worked on.
    #[test]
    fn no_lane_is_over_its_share_and_no_key_is_lost(
        adds in proptest::collection::vec((0..3u32, 0..20u32), 1..60),
        ends in proptest::collection::vec(0..8usize, 60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let lane = |key: &(u32, u32)| (key.0 > 0).then(|| FairnessGroup { name: key.0.to_string(), share: 2 });
            let queue = Queue::default();
            let mut wanted: HashSet<_> = adds.iter().copied().collect();
            let (mut working, mut ends) = (Vec::<(u32, u32)>::new(), ends.into_iter().cycle());
            let mut adds = adds.into_iter();
            loop {
                let added = adds.next();
                if let Some(key) = added {
                    queue.add(key);
                }
                let second = Duration::from_secs(1);
                if let Ok(key) = tokio::time::timeout(second, queue.next_in(lane)).await {
                    wanted.remove(&key);
                    working.push(key);
                } else if working.is_empty() && added.is_none() {
                    break;
                }
                for of in 1..3 {
                    assert!(working.iter().filter(|key| key.0 == of).count() <= 2, "{working:?}");
                }
                let end = ends.next().unwrap_or_default();
                if end < working.len() || added.is_none() {
                    queue.done(&working.swap_remove(end % working.len()));
                }
            }
            assert_eq!((wanted.len(), queue.depth()), (0, 0));
            assert!(queue.state().lanes.is_empty());
        });
    }
}

#[test]
fn the_back_off_is_bounded() {
    assert_eq!(backoff(1), BACKOFF_FIRST);
    assert_eq!(backoff(u32::MAX), BACKOFF_MOST);
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_keeps_nothing() {
    let queue = Queue::default();
    let lane = || Some(FairnessGroup { name: "l".to_owned(), share: 1 });
    queue.add("in work");
    assert_eq!(queue.next_in(|_| lane()).await, "in work");
    queue.add("parked");
    assert!(tokio::time::timeout(Duration::from_secs(1), queue.next_in(|_| lane())).await.is_err());
    queue.add("in work");
    queue.add_after("later", Duration::from_secs(60));
    queue.close();
    queue.add("told");
    queue.retry("failed");
    queue.done(&"in work");
    assert_eq!(queue.depth(), 0);
    queue.open();
    assert!(tokio::time::timeout(Duration::from_secs(600), queue.next_in(|_| lane())).await.is_err());
    queue.add("told");
    assert_eq!(queue.next_in(|_| lane()).await, "told");
}

/// A slot that was handed to a dropped key is free again.
#[tokio::test(start_paused = true)]
async fn a_closed_queue_leaves_no_place_taken() {
    let queue = Queue::default();
    let lane = || Some(FairnessGroup { name: "l".to_owned(), share: 1 });
    queue.add("first");
    assert_eq!(queue.next_in(|_| lane()).await, "first");
    queue.add("second");
    assert!(tokio::time::timeout(Duration::from_secs(1), queue.next_in(|_| lane())).await.is_err());
    queue.done(&"first");
    queue.close();
    queue.open();
    queue.add("third");
    assert_eq!(queue.next_in(|_| lane()).await, "third");
}

/// A key in two groups starts when both have a free slot, and while one is full it holds no slot of the
/// other.
#[tokio::test(start_paused = true)]
async fn a_key_in_two_lanes_waits_for_both() {
    let queue: Queue<(&str, &str)> = Queue::default();
    let lanes = |key: &(&str, &str)| {
        let share = |name: &str, share| FairnessGroup { name: name.to_owned(), share };
        [share(key.0, 2), share(&key.1[..2], 1)]
    };
    let second = Duration::from_secs(1);
    let next = || async { tokio::time::timeout(second, queue.next_in(lanes)).await.ok() };
    for key in
        [("ns", "p1a"), ("ns", "p1b"), ("ns", "p2a"), ("ns", "p3a"), ("other", "p1c"), ("other", "p4a")]
    {
        queue.add(key);
    }
    assert_eq!(next().await, Some(("ns", "p1a")));
    assert_eq!(next().await, Some(("ns", "p2a")), "its package is free, and so is a place of ns");
    assert_eq!(next().await, Some(("other", "p4a")), "ns has no place, p1 neither");
    assert_eq!(next().await, None);
    queue.done(&("ns", "p1a"));
    let mut begun = [next().await.unwrap(), next().await.unwrap()];
    begun.sort_unstable();
    assert_eq!(next().await, None);
    for key in [("ns", "p2a"), ("other", "p4a"), begun[0], begun[1]] {
        queue.done(&key);
    }
    let mut rest = Vec::new();
    while let Some(key) = next().await {
        rest.push(key);
        queue.done(&key);
    }
    assert_eq!((begun, rest), ([("ns", "p3a"), ("other", "p1c")], vec![("ns", "p1b")]));
    assert_eq!((queue.depth(), queue.state().lanes.len()), (0, 0));
}
