//! A network in memory, a simulated clock and seeded randomness, for tests without real time.
