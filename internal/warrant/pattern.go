package warrant

func checkPattern(string) *wordsError { return nil }
