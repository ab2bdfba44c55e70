package pipeline

// PeakMemory is the most memory that this process has had, in bytes; 0 where the system
// does not say.
func PeakMemory() int64 { return peakMemory() }
