package schema

// checkLimits checks the counts that the target limits.
func (l *lowerer) checkLimits() {
	if l.p.limits == (limits{}) {
		return
	}
	var c limits
	l.count(l.root, 0, &c)
	lim := l.p.limits
	for _, x := range [...]struct {
		have, max int
		what      string
	}{
		{c.properties, lim.properties, "properties"},
		{c.levels, lim.levels, "levels of nesting"},
		{c.nameChars, lim.nameChars, "characters in names and values"},
		{c.enumValues, lim.enumValues, "enum values"},
		{c.optional, lim.optional, "optional properties"},
		{c.unions, lim.unions, "unions"},
	} {
		if x.max > 0 && x.have > x.max {
			l.refuse(l.root, itoa(x.have)+" "+x.what+", and this target accepts "+itoa(x.max))
		}
	}
}

func (l *lowerer) count(n *node, level int, c *limits) {
	c.levels = max(c.levels, level)
	for _, m := range n.fields {
		switch m.kw {
		case kwProperties:
			required := n.required()
			c.properties += len(m.val.fields)
			c.optional += len(m.val.fields) - len(required)
			for _, p := range m.val.fields {
				c.nameChars += len(p.key)
				l.count(p.val, level+1, c)
			}
		case kwDefs:
			for _, d := range m.val.fields {
				c.nameChars += len(d.key)
				l.count(d.val, level, c)
			}
		case kwEnum:
			values := elements(m.val)
			c.enumValues += len(values)
			for _, v := range values {
				c.nameChars += len(v)
			}
		case kwConst:
			c.nameChars += len(m.val.raw)
		case kwType:
			if len(m.val.raw) > 0 && m.val.raw[0] == '[' {
				c.unions++
			}
		case kwAnyOf:
			c.unions++
			for _, b := range m.val.list {
				l.count(b, level, c)
			}
		case kwItems:
			l.count(m.val, level, c)
		}
	}
}
