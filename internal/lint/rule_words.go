package lint

// unquotedParameter finds parameters whose value is split at blanks and expanded as a pattern: who sets
// the value chooses the arguments.
func unquotedParameter(s *source) []hit {
	var all []hit
	for _, u := range s.facts.uses {
		if !isParam(u.name) || !u.splits() || commandOf(u.stmt).name == ":" {
			continue
		}
		all = append(all, on(u.exp, Warning, u.name+" is not quoted: its value is split into words and expanded as a pattern", `write "`+s.of(u.exp)+`"`))
	}
	return all
}

// arithmeticParameter finds parameters that are evaluated: bash runs a[$(command)] in a number.
func arithmeticParameter(s *source) []hit {
	var all []hit
	for _, u := range s.facts.uses {
		if isParam(u.name) && u.shows() && u.place == arithmetic {
			all = append(all, on(u.exp, Warning, u.name+" is evaluated as arithmetic, where a value such as a[$(command)] runs a command",
				"check it first: [[ $"+u.name+" =~ ^[0-9]+$ ]], in a warrant by type int"))
		}
	}
	return all
}
