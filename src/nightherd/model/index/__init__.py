"""What can be looked up about jobs without reading their journals: outlines and searchable texts."""
