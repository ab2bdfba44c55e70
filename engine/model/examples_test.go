package model_test

import (
	"fmt"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// A model of one's own: multiply, average over neighbours twice, classify. It then
// trains like any other, as --model=smooth.
func ExampleRegister() {
	model.Register("smooth", func(n *model.Net) model.Value {
		cfg := n.Config()
		h := n.Linear(n.X(), cfg.Hidden, model.End{Bias: true, Act: kernels.ReLU, Dropout: cfg.Dropout})
		h = n.Gather(h, model.NormMean, model.End{})
		h = n.Gather(h, model.NormMean, model.End{})
		return n.Linear(h, cfg.Classes, model.End{Bias: true})
	})
	p, err := model.Config{Model: "smooth", Layers: 1, Hidden: 16, Features: 100, Classes: 7, Dropout: 0.5}.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Steps {
		fmt.Print(s.Name, " ")
	}
	// Output: AV SC GA SC GA AV+loss+∇AV ∇SC ∇GA ∇SC ∇GA ∇AV
}
