"""Doctor: checks that rows and journals agree, and repairs."""
