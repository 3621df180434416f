"""The page to watch studies on: reads results folders and serves them to browsers. It writes nothing."""
