// What others wrote reaches a terminal, a log or a metric only past src/clean-text.ts. So the streams that a person reads, and
// the console, are named in few files; a row says why a file may.
import { expect, it } from 'vitest'
import { expectNone, tree, withoutComments } from './tree.ts'

/** Files that write to such a stream; all but those of OWN_WORDS clean what they write. */
const WRITERS: Record<string, string> = {
  'cli/terminal.ts': 'what commands print and say',
  'cli/confirm.ts': 'a question, which the line editor draws again',
  'producers/answer-deadline.ts': 'a line over the progress, for runs that know no terminal of commands',
  'producers/progress.ts': 'a bar moves the cursor',
  'producers/submit/progress.ts': 'a line that is overwritten',
  'producers/submit/submit.ts': 'NDJSON of a run that knows no terminal of commands',
  'src/log.ts': 'the log',
}
const OWN_WORDS: Record<string, string> = {
  'clients/node/node-version.ts': 'one line with Node’s version, before anything else is loaded',
  'bin/launch.mjs': 'runs before dependencies are there; its lines are constant but for the version of Node',
}
/** Files that hand a stream on, or look at it. */
const HANDS_ON: Record<string, string> = {
  'cli/commands/ingest.ts': 'to the progress',
  'cli/commands/migrate.ts': 'to the progress',
  'cli/commands/demo/reports.ts': 'to the progress',
  'cli/commands/submit.ts': 'to the run',
  'cli/commands/operate/look.ts': 'whether the terminal is this process’s own',
  'src/embedded/command.ts': 'reads those of a program that it has started',
  'bin/build/compile.ts': 'reads that of the compiler',
  'bin/pictures.ts': 'reads those of a command that it has started',
}

const WRITE = /\b(std(out|err)|stream|out|progress|terminal)\.(write|end)\(|\bfd: [12]\b|\bwriteSync\([12],/g
const NAMED =
  /\bstd(out|err)\b|\b_rawDebug\b|(?<![\w.])console(\.(assert|debug|dir|error|info|log|table|trace|warn)|\[)/g

/** Streams of files, by names that a stream for a person has, too. */
const OF_FILES = ['producers/ingest/results.ts']

const written = tree.filter(
  ({ path }) => /^(cli|clients|src|producers|workers|bin)\/.*\.(ts|mjs)$/.test(path) && !OF_FILES.includes(path),
)

const foundBy = (pattern: RegExp, text: string) => withoutComments(text).match(pattern) ?? []

it('nothing is written to a stream that a person reads, but where it is cleaned', () => {
  expectNone(
    written.filter(({ path }) => !(path in WRITERS) && !(path in OWN_WORDS)),
    ({ text }) => foundBy(WRITE, text),
  )
  expectNone(
    written.filter(({ path }) => path in WRITERS),
    ({ text }) => (/\bclean(Text|Json)\b/.test(withoutComments(text)) ? [] : ['cleans nothing']),
  )
})

it('no other file than those of the tables has such a stream, or the console', () => {
  const listed = { ...WRITERS, ...OWN_WORDS, ...HANDS_ON }
  expectNone(
    written.filter(({ path }) => !(path in listed)),
    ({ text }) => foundBy(NAMED, text),
  )
  const needed = written.filter(({ text }) => foundBy(WRITE, text).length + foundBy(NAMED, text).length > 0)
  expect(Object.keys(listed).sort()).toEqual(needed.map(({ path }) => path).sort())
})

it('each way to a person is seen', () => {
  const ways = [
    'terminal.stderr.write(name)',
    'process.stdout.write(name)',
    'stream.write(name)',
    'console.log(name)',
    "console['warn'](name)",
    'writeSync(2, name)',
    'pino.destination({ fd: 2 })',
    'await pipeline(lines, terminal.stdout)',
    'const { stderr } = terminal',
  ]
  for (const way of ways) expect(foundBy(WRITE, way).length + foundBy(NAMED, way).length, way).toBeGreaterThan(0)
  for (const other of ['console.isEmbedded', 'site.console.log', 'out.toString()'])
    expect([...foundBy(WRITE, other), ...foundBy(NAMED, other)], other).toEqual([])
})
