"""What the product keeps of itself: jobs, rollups, the recorder, exporters, weekly reports."""
