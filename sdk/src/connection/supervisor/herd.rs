//! Many supervisors at once, and how late one is: simulations in virtual time.

use super::rig::*;
use super::*;

/// One client whose proven link drops at `dropped` and whose service is back at `back`: the times of its dials from the
/// drop on. The last one was welcomed.
fn dials_after_drop(seed: u64, spread: Duration, dropped: Duration, back: Duration) -> Vec<Duration> {
    let mut rig = Rig::seeded(Config::default(), seed);
    let link = rig.proven(spread);
    rig.run_until(dropped);
    let mut world = single_instance(back, spread);
    let mut dials = Vec::new();
    let mut seen = |time: Duration, action: &Action| {
        if matches!(action, Action::Dial { .. }) {
            dials.push(time);
        }
        world(time, action)
    };
    let actions = rig.lose(link, None);
    rig.answer(actions, &mut seen);
    while rig.supervisor.link().is_none() {
        let deadline = rig.deadline();
        rig.live_until(deadline, &mut seen);
    }
    dials
}

/// FC-48: 500 clients dropped in the same instant, by a service that states a spread: no second holds more than three
/// times the mean number of dials, the first dials included, and all are connected within the cap once it is back.
#[test]
fn fc48_a_herd_is_spread() {
    const CLIENTS: u64 = 500;
    // A hundred connections a second, as the service states it.
    let spread = SECOND * 5;
    let dropped = SECOND * 100;
    for outage in [Duration::ZERO, MS * 700, SECOND * 10, SECOND * 120] {
        let back = dropped + outage;
        let clients: Vec<_> = (0..CLIENTS).map(|seed| dials_after_drop(seed, spread, dropped, back)).collect();
        let mut buckets = std::collections::BTreeMap::<u64, u32>::new();
        for dial in clients.iter().flatten() {
            *buckets.entry((*dial - dropped).as_secs()).or_default() += 1;
        }
        let seconds = f64::from(u32::try_from(buckets.len()).unwrap());
        let mean = f64::from(buckets.values().sum::<u32>()) / seconds;
        let most = f64::from(*buckets.values().max().unwrap());
        assert!(most <= 3.0 * mean, "{most} dials in one second, {mean:.1} in the mean, outage {outage:?}");
        let last = clients.iter().filter_map(|dials| dials.last()).max().unwrap();
        assert!(*last - back <= SECOND * 5, "the last one connected {:?} after the service", *last - back);
    }
}

/// R8: the median time from the service's return to the welcome, as the defaults promise it.
#[test]
fn r8_median_lag_after_an_outage() {
    let dropped = SECOND * 100;
    for (outage, promised) in [(MS * 100, MS * 23), (SECOND, MS * 147), (SECOND * 5, MS * 148), (SECOND * 60, MS * 820)]
    {
        let back = dropped + outage;
        let lag = |seed| *dials_after_drop(seed, Duration::ZERO, dropped, back).last().unwrap() - back;
        let mut lags: Vec<Duration> = (0..1_000).map(lag).collect();
        lags.sort();
        let median = lags[lags.len() / 2];
        let apart = median.abs_diff(promised);
        println!("outage {outage:?}: median lag {median:?}, promised {promised:?}, greatest {:?}", lags.last());
        assert!(apart * 5 <= promised, "outage {outage:?}: median lag {median:?}, promised {promised:?}");
    }
}
