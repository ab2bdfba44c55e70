package compare

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"
)

func example() (*Comparison, string) {
	c := &Comparison{Target: 0.7, Runs: 1}
	add(c, "cpu", run("cpu", 7, 0.5, "target", 0.5, 0.6, 0.7))
	of := add(c, "lambda", run("lambda", 7, 0.3, "target", 0.5, 0.6, 0.7))
	add(c, "cpu:async", run("cpu", 7, 0.25, "epochs", 0.5, 0.65, 0.6))
	return c, of
}

func TestPlotPNG(t *testing.T) {
	c, of := example()
	data, err := c.Plot("png", of)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	size := picture.Bounds()
	if size.Dx() != 1800 || size.Dy() != 540 {
		t.Errorf("%v, want 1800 by 540 pixels", size)
	}
	// each mode's colour must be in the panels of time and of cost, and in that of
	// values if the mode has one
	for mode, m := range c.Modes {
		want := colour(mode).(color.RGBA)
		for panel := range 3 {
			found := 0
			for x := size.Dx() * panel / 3; x < size.Dx()*(panel+1)/3; x++ {
				for y := range size.Dy() {
					if color.RGBAModel.Convert(picture.At(x, y)) == color.Color(want) {
						found++
					}
				}
			}
			if has := panel < 2 || m.Value.Known(); found > 0 != has {
				t.Errorf("panel %d has %d pixels in the colour of %s", panel, found, m.Name)
			}
		}
	}
}

func TestPlotSVG(t *testing.T) {
	c, of := example()
	data, err := c.Plot("svg", of)
	if err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	var text strings.Builder
	paths, root := 0, ""
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
			if token.Name.Local == "path" {
				paths++
			}
		case xml.CharData:
			text.WriteString(strings.TrimSpace(string(token)) + "\n")
		}
	}
	if root != "svg" || paths < 20 {
		t.Errorf("<%s> with %d paths", root, paths)
	}
	for _, want := range []string{"validation accuracy, %", "seconds", "millionths of a dollar", "cpu:async", "target", "value, cpu = 1", "no value"} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("%q is not in the picture:\n%s", want, text.String())
		}
	}
}

func TestPlotOfNothing(t *testing.T) {
	c := &Comparison{Runs: 1}
	of := add(c, "cpu", run("cpu", 7, 0.5, "interrupted"))
	for _, format := range Formats {
		if data, err := c.Plot(format, of); err != nil || len(data) == 0 {
			t.Errorf("%s: %d bytes, %v", format, len(data), err)
		}
	}
	if _, err := c.Plot("gif", of); err == nil || !strings.Contains(err.Error(), `no picture format "gif"`) {
		t.Errorf("gif: %v", err)
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "[0.0 0.2 0.4 0.6 0.8 1.0]"},
		{0, 0.19, "[0.00 0.05 0.10 0.15]"},
		{48, 81, "[50 60 70 80]"},
		{0, 12000, "[0 5,000 10,000]"},
		{1, 1, "[]"},
	} {
		labels := []string{}
		for _, tick := range (ticks{}).Ticks(test.low, test.high) {
			labels = append(labels, tick.Label)
		}
		if got := fmt.Sprint(labels); got != test.want {
			t.Errorf("%v to %v: %s, want %s", test.low, test.high, got, test.want)
		}
	}
}
