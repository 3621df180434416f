// The page: asks for the snapshot and shows it.
