package drift

// Object is an object of the API as a client reads it: integers are int64.
type Object map[string]any

// as is a value where it is of that type, else the zero one: something else in its place counts as nothing there.
func as[T any](value any) T {
	if v, ok := value.(T); ok {
		return v
	}
	var none T
	return none
}

func (o Object) text(field string) string { return as[string](o[field]) }

func (o Object) metadata() map[string]any { return as[map[string]any](o["metadata"]) }

// APIVersion is group and version.
func (o Object) APIVersion() string { return o.text("apiVersion") }

// Kind is the kind.
func (o Object) Kind() string { return o.text("kind") }

// Name is the name. All that is compared is cluster-scoped.
func (o Object) Name() string { return Object(o.metadata()).text("name") }

// String is kind and name.
func (o Object) String() string { return o.Kind() + "/" + o.Name() }

// Difference is one live object that is not as it was shipped.
type Difference struct {
	Kind, Name string
	// What says how it differs: Missing, or a field.
	What string
}

// String is one line.
func (d Difference) String() string { return d.Kind + "/" + d.Name + ": " + d.What }
