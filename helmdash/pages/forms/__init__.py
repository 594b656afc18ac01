"""Forms of the pages: text into values, or a sentence that says the fix."""
