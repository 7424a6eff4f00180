package runlog

// OpenSmall is Open with less room.
var OpenSmall = open
