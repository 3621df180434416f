"""The figures of a report, as inline SVG."""
