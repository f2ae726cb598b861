"""The edges of a stream: sources and sinks, the journal, the state's file, and the loop that joins them to the pure core."""
