package order

import "dorylus/csrc/metis"

// linked is METIS where this test binary has it.
func linked() Partitioner {
	if metis.Linked() {
		return metis.Partition
	}
	return nil
}
