// `npm run bench`: measures each case and its reference in the same run on the same machine; compare the ratios.
// `npm run bench -- --help` lists the cases and options.
import { parseArgs } from 'node:util'
import { CASES, DEFAULT_CASES } from './cases.ts'
import { MIXES } from './content/mixes.ts'
import { runContent } from './content/run.ts'
import { type Line, printLines } from './line.ts'
import { type EngineName, openPlace } from './place.ts'
import { repeat } from './repeat/run.ts'

const HELP = `npm run bench -- [options]

  --cases LETTERS   which cases (${DEFAULT_CASES})
  --engine NAME     redis or postgres (both)
  --rows N          rows of a file, or jobs; some cases have a limit of their own (200000)
  --tokens N        tokens in the store of (p) (10000000)
  --runs N          run each case so often; prints medians, lowest and highest (1)
  --against DIR     another checkout of tokenmill, whose bench runs in alternation with this one
  --content NAMES   in place of cases: these mixes of content, or all, or parts (names of one script each), or formats (forms of file)
  --content-file PROFILE FILE
                    a file of yours as a mix; PROFILE is a name, a file, or none for our own columns

${Object.entries(CASES)
  .map(([letter, { about }]) => `  ${letter}  ${about}`)
  .join('\n')}

Mixes:
${Object.entries(MIXES)
  .map(([name, { about }]) => `  ${name.padEnd(20)}${about}`)
  .join('\n')}
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '200000' },
    engine: { type: 'string' },
    cases: { type: 'string', default: DEFAULT_CASES },
    tokens: { type: 'string', default: '10000000' },
    runs: { type: 'string', default: '1' },
    against: { type: 'string' },
    content: { type: 'string' },
    'content-file': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const letters = [...values.cases]
const unknown = letters.filter(letter => !(letter in CASES))
if (unknown.length > 0) throw new Error(`there is no case ${unknown.join(', ')}: see --help`)
const engines = (values.engine ? [values.engine] : ['redis', 'postgres']) as EngineName[]
const { against, tokens } = values
const runs = Number(values.runs)

const { content, 'content-file': profile } = values
const [file, ...surplus] = positionals
if (surplus.length > 0 || (file === undefined) !== (profile === undefined))
  throw new Error('--content-file takes a profile and a file, and nothing else has no option: see --help')
const given = profile === undefined || file === undefined ? undefined : { profile, file }

if (values.help) process.stdout.write(HELP)
else if (content !== undefined || given)
  await runContent({ engines, names: content, given, rows: Number(values.rows), runs, against })
else if (runs > 1 || against !== undefined) await repeat({ engines, letters, runs, against, rows: values.rows, tokens })
else printLines(await measureOnce())

async function measureOnce(): Promise<Line[]> {
  const place = await openPlace()
  const lines: Line[] = []
  try {
    for (const engine of engines)
      for (const letter of letters) {
        const asked = { place, engine, rows: Number(values.rows), tokens: Number(tokens) }
        lines.push(...((await CASES[letter]?.run(asked)) ?? []))
      }
  } finally {
    await place.close()
  }
  return lines
}
