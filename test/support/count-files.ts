// Counts the files that a process loads, for commands that have to be fast.

/** How many files help may load; a command's work loads over a thousand. */
export const FILES_MAX = 20
/** For `node --import`: says at the process's end how many files it has loaded. */
export const COUNT_FILES = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs'
  import { registerHooks } from 'node:module'
  let files = 0
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) files += 1
      return next(url, context)
    },
  })
  process.on('exit', () => writeSync(2, '\\nfiles ' + files + '\\n'))
`)}`
