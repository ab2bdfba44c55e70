package compare

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Formats are those of Plot, which are also the ends of a file's name.
var Formats = []string{"png", "svg"}

// Size of the picture; PNGs have resolution dots per inch.
const (
	pictureWidth  = 15 * vg.Inch
	pictureHeight = 4.5 * vg.Inch
	resolution    = 120
)

// colours of the modes, in order: told apart by colour-blind people too.
var colours = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255}, {90, 90, 90, 255},
}

func colour(mode int) color.Color { return colours[mode%len(colours)] }

// Plot is a picture in one of Formats: the metric over seconds and over dollars, one
// curve per run, and a bar of value per mode. of says what the curves show.
func (c *Comparison) Plot(format, of string) ([]byte, error) {
	panels, err := c.Ran().panels(of)
	if err != nil {
		return nil, fmt.Errorf("plot the comparison: %w", err)
	}
	var canvas vg.CanvasSizer
	var picture io.WriterTo
	switch format {
	case "png":
		png := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(pictureWidth, pictureHeight), vgimg.UseDPI(resolution))}
		canvas, picture = png, png
	case "svg":
		svg := vgsvg.New(pictureWidth, pictureHeight)
		canvas, picture = svg, svg
	default:
		return nil, fmt.Errorf("plot the comparison: no picture format %q; choose from %v", format, Formats)
	}
	dc := draw.New(canvas)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 18, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 12}
	for i, tile := range plot.Align([][]*plot.Plot{panels}, tiles, dc)[0] {
		panels[i].Draw(tile)
	}
	var b bytes.Buffer
	if _, err := picture.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot the comparison: %w", err)
	}
	return b.Bytes(), nil
}

func (c *Comparison) panels(of string) ([]*plot.Plot, error) {
	overTime, err := c.curves(of, "seconds", 1, func(p Point) float64 { return p.Seconds })
	if err != nil {
		return nil, err
	}
	unit, factor := "dollars", 1.0
	if c.dearest() < 0.01 {
		unit, factor = "millionths of a dollar", 1e6
	}
	overCost, err := c.curves(of, unit, factor, func(p Point) float64 { return p.USD })
	if err != nil {
		return nil, err
	}
	values, err := c.bars()
	return []*plot.Plot{overTime, overCost, values}, err
}

// dearest is the highest cost on a curve.
func (c *Comparison) dearest() float64 {
	top := 0.0
	for _, m := range c.Modes {
		for _, curve := range m.Curves {
			for _, p := range curve {
				if p.USD > top {
					top = p.USD
				}
			}
		}
	}
	return top
}

// curves is a panel of the metric, in percent, over x.
func (c *Comparison) curves(of, unit string, factor float64, x func(Point) float64) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = unit, of+", %"
	p.X.Min = 0
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{}
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	right := 0.0
	for i, m := range c.Modes {
		for _, curve := range m.Curves {
			var points plotter.XYs
			for _, at := range curve {
				if v := x(at); !math.IsNaN(v) && !math.IsNaN(at.Metric) {
					points = append(points, plotter.XY{X: v * factor, Y: 100 * at.Metric})
				}
			}
			if len(points) == 0 {
				continue
			}
			right = max(right, points[len(points)-1].X)
			if err := addCurve(p, points, colour(i)); err != nil {
				return nil, err
			}
		}
		swatch := plotter.Line{LineStyle: draw.LineStyle{Color: colour(i), Width: vg.Points(2)}}
		p.Legend.Add(m.Name, &swatch)
	}
	if c.Target > 0 && right > 0 {
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 100 * c.Target}, {X: right, Y: 100 * c.Target}})
		if err != nil {
			return nil, err
		}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
		p.Add(line)
		p.Legend.Add("target", line)
	}
	if right == 0 {
		p.Title.Text = "nothing was measured"
		p.X.Max, p.Y.Min, p.Y.Max = 1, 0, 100
	}
	return p, nil
}

// addCurve draws a run with a dot where it ended.
func addCurve(p *plot.Plot, points plotter.XYs, c color.Color) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.2)
	end, err := plotter.NewScatter(points[len(points)-1:])
	if err != nil {
		return err
	}
	end.Shape, end.Color, end.Radius = draw.CircleGlyph{}, c, vg.Points(3)
	p.Add(line, end)
	return nil
}

// bars is the panel of values, each relative to the first mode's where that has one.
func (c *Comparison) bars() (*plot.Plot, error) {
	p := plot.New()
	relative := c.Modes[0].Value.Known()
	p.Y.Tick.Marker = ticks{}
	p.Y.Label.Text = "value, 1/(seconds·dollars)"
	if relative {
		p.Y.Label.Text = "value, " + c.Modes[0].Name + " = 1"
	}
	var names []string
	labels := plotter.XYLabels{}
	for i, m := range c.Modes {
		v, text := float64(m.Value), "no value"
		if relative {
			v = float64(m.Relative)
		}
		if math.IsNaN(v) {
			v = 0
		} else {
			text = significant(v, 3)
		}
		bar, err := plotter.NewBarChart(plotter.Values{v}, vg.Points(36))
		if err != nil {
			return nil, err
		}
		bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), colour(i), 0
		p.Add(bar)
		names = append(names, m.Name)
		labels.XYs = append(labels.XYs, plotter.XY{X: float64(i), Y: v})
		labels.Labels = append(labels.Labels, text)
	}
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return nil, err
	}
	for i := range text.TextStyle {
		text.TextStyle[i].XAlign = draw.XCenter
	}
	text.Offset = vg.Point{Y: vg.Points(3)}
	p.Add(text)
	p.NominalX(names...)
	p.X.Min, p.X.Max, p.Y.Min = -0.6, float64(len(names))-0.4, 0
	if p.Y.Max == 0 {
		p.Y.Max = 1
	}
	return p, nil
}

// ticks are about five marks on an axis, at multiples of 1, 2 or 5.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(low, high float64) []plot.Tick {
	const marks = 5
	rough := (high - low) / marks
	if !(rough > 0) || math.IsInf(rough, 0) {
		return nil
	}
	ten := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * ten
	for _, m := range []float64{5, 2, 1} {
		if m*ten >= rough {
			step = m * ten
		}
	}
	var all []plot.Tick
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		all = append(all, plot.Tick{Value: i * step, Label: grouped(strconv.FormatFloat(i*step, 'f', max(0, -int(math.Floor(math.Log10(step)))), 64))})
	}
	return all
}
