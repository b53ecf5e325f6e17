//! What is peculiar to a service, as a value: its states, its stages, its logs, its pace.
