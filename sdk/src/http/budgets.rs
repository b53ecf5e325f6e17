//! One budget for each origin and credential, shared by all that ask there (R8).
