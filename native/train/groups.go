package train

// GroupNames lists the parameters of each group, in the order in which Hyper has their learning rates.
func (t *Trainer) GroupNames() [][]string { return t.recipe.groups }
