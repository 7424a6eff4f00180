// Package resultschema learns the shape of tools' results, since nine in ten upstreams
// do not declare it. A [Store] gets every successful result, processes it in the
// background, and merges it into the shape of all results of the tool's definition
// (see package jsontype). It stores no values and no sizes. A [Storage], such as
// [Files], makes the shapes persistent.
package resultschema
