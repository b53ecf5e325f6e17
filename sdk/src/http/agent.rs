//! Shares connections, budgets and credentials among reads.
