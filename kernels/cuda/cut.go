package cuda

import "fmt"

// Cut says where gathers cut rows and columns otherwise than they do by themselves, to
// measure what else could be: zero fields change nothing. A row's bits depend on it, so
// training leaves it alone. Chunks of long rows have edgeChunk edges, as compiled.
type Cut struct {
	Wide int64 `json:"wide,omitempty"` // edges from which a warp takes a row of a narrow matrix; 0: 32
	Long int64 `json:"long,omitempty"` // edges from which a row is taken in chunks; 0: 4096
	Tile int   `json:"tile,omitempty"` // columns of a tile, 32, 64 or 128; 0: as fits the width and the L2 cache
}

func (c *Cut) check() error {
	if c.Wide == 0 {
		c.Wide = wideRow
	}
	if c.Long == 0 {
		c.Long = longRow
	}
	if c.Wide < 1 || c.Long <= c.Wide {
		return fmt.Errorf("rows wide from %d edges on and long from %d; want 0 < wide < long", c.Wide, c.Long)
	}
	if c.Tile != 0 && c.form() == (form{}) {
		return fmt.Errorf("tiles of %d columns, want 32, 64 or 128, or 0", c.Tile)
	}
	return nil
}

// form is that of the tile asked for.
func (c *Cut) form() form {
	for _, f := range []form{g8, g16, g32} {
		if f.tile == c.Tile {
			return f
		}
	}
	return form{}
}
