package dataset

import "fmt"

// splits looks at every split's three lists.
func (c *checker) splits() {
	r := c.r
	if len(r.Splits) == 0 {
		if r.hasLabels() {
			draw := "--split=random:60/20/20 or --split=per-class:20/30"
			if r.Multi != nil {
				draw = "--split=random:60/20/20"
			}
			c.add(Finding{Code: "no-splits", Severity: Warning, Count: 1, First: r.where(0),
				Effect: "it is not said which vertices train and which test, so that training refuses to start", Remedy: "draw a split with " + draw + ", or name a file of splits (--split-file)"})
		}
		return
	}
	exists := r.classesThatExist()
	var outside, repeats, overlap, unlabelled, untrained, emptyTrain, emptyOther tally
	role := make([]int8, r.N)
	for i := range r.Splits {
		s := &r.Splits[i]
		clear(role)
		trained := make([]bool, r.classes())
		for k := range 3 {
			ids := *s.role(k)
			at := func(v int32) string {
				return fmt.Sprintf("vertex %s in %s of split %q", r.name(int(v)), roleNames[k], s.Name)
			}
			if len(ids) == 0 {
				empty := &emptyOther
				if k == 0 {
					empty = &emptyTrain
				}
				empty.hit(func() string { return fmt.Sprintf("%s of split %q", roleNames[k], s.Name) })
			}
			for _, v := range ids {
				if v < 0 || int(v) >= r.N {
					outside.hit(func() string { return at(v) })
					continue
				}
				switch had := role[v]; {
				case had == int8(k+1):
					repeats.hit(func() string { return at(v) })
				case had != 0:
					overlap.hit(func() string { return at(v) + ", which is in " + roleNames[had-1] + " too" })
				}
				role[v] = int8(k + 1)
				if !r.labelled(int(v)) {
					unlabelled.hit(func() string { return at(v) })
				} else if k == 0 {
					for _, c := range r.classesOf(int(v)) {
						if int(c) < len(trained) {
							trained[c] = true
						}
					}
				}
			}
		}
		for k := range trained {
			if !trained[k] && len(s.Train) > 0 && exists[k] {
				untrained.hit(func() string { return fmt.Sprintf("class %s in split %q", r.className(k), s.Name) })
			}
		}
	}
	c.add(outside.finding("split-out-of-range", Error, "a split names a vertex that does not exist: the wrong vertices would be trained", "name vertices by their place in the data set's own order, from 0"))
	c.add(repeats.finding("split-repeats", Error, "the vertex would count twice in the loss or the accuracy", "name each vertex once"))
	c.add(overlap.finding("split-overlap", Error, "the vertex would be tested on what it was trained with: accuracies would be too high", "give every vertex one role per split"))
	c.add(unlabelled.finding("split-unlabelled", Error, "the loss or accuracy of a vertex without a label is not defined", "take it out of the split, or give it a label"))
	c.add(emptyTrain.finding("empty-train", Error, "there is nothing to train on", "name training vertices, or draw a split with --split=random:60/20/20"))
	c.add(emptyOther.finding("empty-mask", Warning, "its accuracy cannot be measured; without validation vertices the last epoch counts as the best", "name validation and test vertices, or draw a split with --split=random:60/20/20"))
	c.add(untrained.finding("class-untrained", Warning, "no training vertex has this class, so it is never predicted", untrainedRemedy(r)))
}

func untrainedRemedy(r *Raw) string {
	if r.Multi != nil {
		return "give more vertices to training, or leave the class out"
	}
	return "draw the split per class, such as --split=per-class:20/30"
}

// classesThatExist says for each class whether a vertex has it.
func (r *Raw) classesThatExist() []bool {
	has := make([]bool, r.classes())
	for v := range r.N {
		for _, k := range r.classesOf(v) {
			if int(k) < len(has) {
				has[k] = true
			}
		}
	}
	return has
}
