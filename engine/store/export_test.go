package store

// NpyHeader is npyHeader for tests outside the package.
var NpyHeader = npyHeader
