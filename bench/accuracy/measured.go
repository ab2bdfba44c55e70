package main

// measured holds a GCN to what an independent trainer reached with the same settings
// and splits after the last epoch, on every real set that it was run on. Its adjacency
// is symmetric, also where a file's edges have a direction.
var measured = []gate{
	own("planetoid-cora", "planetoid-cora", "", "accuracy", 20, 81.65, 1.5, "Kipf and Welling 2017 report 81.5"),
	own("planetoid-citeseer", "planetoid-citeseer", "", "accuracy", 20, 70.69, 1.5, "Kipf and Welling 2017 report 70.3"),
	own("linqs-cora", "linqs-cora", "linqs-cora.json", "accuracy", 5, 79.16, 3, "Shchur et al. 2018 report 81.5",
		"--hidden=64", "--features=row-normalize"),
	own("gnnbench cora", "gnnbench-npz/cora.npz", "gnnbench-cora.json", "accuracy", 5, 78.77, 3, "Shchur et al. 2018 report 81.5",
		"--hidden=64", "--features=row-normalize"),
	own("gnnbench citeseer", "gnnbench-npz/citeseer.npz", "gnnbench-citeseer.json", "accuracy", 5, 68.97, 3, "Shchur et al. 2018 report 71.9",
		"--hidden=64", "--features=row-normalize"),
	own("ppnp-cora-ml", "ppnp-cora-ml/cora_ml.npz", "ppnp-cora-ml.json", "accuracy", 5, 82.03, 1.5, "",
		"--hidden=64", "--features=row-normalize"),
	own("amazon-photo", "amazon-photo/amazon_electronics_photo.npz", "amazon-photo.json", "accuracy", 5, 90.56, 1.5, "Shchur et al. 2018 report 91.2",
		"--hidden=64"),
	own("amazon-computers", "amazon-computers/amazon_electronics_computers.npz", "amazon-computers.json", "accuracy", 5, 80.91, 1.5,
		"Shchur et al. 2018 report 82.6", "--hidden=64"),
	own("coauthor-cs", "coauthor-cs/ms_academic_cs.npz", "coauthor-cs.json", "accuracy", 3, 89.28, 1.5, "Shchur et al. 2018 report 91.1",
		"--hidden=64"),
	own("coauthor-physics", "coauthor-physics/ms_academic_phy.npz", "coauthor-physics.json", "accuracy", 3, 91.02, 1.5, "Shchur et al. 2018 report 92.8",
		"--hidden=64", "--epochs=120"),
	own("minesweeper", "heterophilous/minesweeper.npz", "", "roc-auc", 5, 72.49, 3, "",
		"--hidden=64", "--dropout=0.2", "--input-dropout=0.2", "--weight-decay=0", "--epochs=300"),
	own("actor", "heterophilous/actor.npz", "", "accuracy", 10, 30.04, 1.5, "Zhu et al. 2020 report 30.26",
		"--hidden=64", "--features=row-normalize"),
	own("squirrel", "heterophilous/squirrel.npz", "", "accuracy", 5, 40.23, 3, "",
		"--hidden=64", "--features=row-normalize"),
	own("texas", "heterophilous/texas.npz", "", "accuracy", 10, 62.16, 3, "Zhu et al. 2020 report 59.46",
		"--hidden=64", "--features=row-normalize"),
	own("chameleon_filtered_directed", "heterophilous/chameleon_filtered_directed.npz", "", "accuracy", 10, 42.65, 3,
		"Platonov et al. 2023 report 40.89", "--hidden=64").prepared("--direction=undirected", "--features=row-normalize"),
	own("musae-facebook", "musae-facebook", "musae-facebook.json", "accuracy", 3, 91.98, 1.5, "",
		"--hidden=64", "--features=row-normalize"),
	own("musae-twitch-ptbr", "musae-twitch-ptbr", "musae-twitch-ptbr.json", "roc-auc", 3, 61.46, 3, "",
		"--hidden=64", "--features=row-normalize"),
	own("github-social", "github-social", "github-social.json", "roc-auc", 3, 80.91, 3, "",
		"--features=identity"),
	own("polblogs", "polblogs/polblogs.npz", "polblogs.json", "accuracy", 3, 90.08, 3, "",
		"--features=identity"),
	own("humango", "humango", "", "micro-f1", 5, 31.09, 3, "",
		"--hidden=64", "--features=standardize", "--weight-decay=0"),
}

// own is the gate of a set that the independent trainer was run on; elsewhere says
// what was published for it, if anything was.
func own(set, data, splits, metric string, runs int, want, band float64, elsewhere string, flags ...string) gate {
	g := gate{name: "gcn " + set, data: data, splits: splits, flags: flags, metric: metric, last: true, runs: runs, want: want, band: band, source: "own"}
	if elsewhere != "" {
		g.source += "; " + elsewhere
	}
	return g
}

// prepared is the gate trained on a store that prepare writes with these flags.
func (g gate) prepared(flags ...string) gate {
	g.prepare = flags
	return g
}
