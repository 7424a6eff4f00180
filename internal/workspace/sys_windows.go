package workspace

// noFollow is nothing here, where no sandbox has written anything.
const noFollow = 0
