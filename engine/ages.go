package engine

// Ages counts the source intervals that gathers have read by the partition that has them
// and by how many epochs their rows were older than the reader's: Ages[s][a] were
// partition s's and a epochs old. Rows of the reader's epoch or a later one have age 0.
type Ages [][]int64

// NewAges has no counts yet, and room for so many partitions.
func NewAges(parts int) Ages {
	const usual = 2 // ages; older rows are rare
	room, a := make([]int64, usual*parts), make(Ages, parts)
	for s := range a {
		a[s] = room[usual*s : usual*s : usual*(s+1)]
	}
	return a
}

// Count adds n reads of rows of partition s, which must be below len(a), that were age
// epochs old.
func (a Ages) Count(s, age int, n int64) {
	for len(a[s]) <= age {
		a[s] = append(a[s], 0)
	}
	a[s][age] += n
}

// Add is a with the counts of b. It has as many partitions as the longer of them, and
// may reuse a.
func (a Ages) Add(b Ages) Ages {
	for len(a) < len(b) {
		a = append(a, []int64{})
	}
	for s, ages := range b {
		for age, n := range ages {
			a.Count(s, age, n)
		}
	}
	return a
}

// Total counts by age alone. nil of none.
func (a Ages) Total() []int64 {
	var sum []int64
	for _, ages := range a {
		for len(sum) < len(ages) {
			sum = append(sum, 0)
		}
		for age, n := range ages {
			sum[age] += n
		}
	}
	return sum
}
