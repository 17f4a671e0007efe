// Makes a tree of the product without some of its features, takes what belongs to them out of the compositions, and
// compiles it.
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { COMPOSITIONS, FEATURES, type FeatureName, featureOf } from '../law/features.ts'
import { tree as files, importsOf, root, targetsOf } from '../law/tree.ts'
import { leaveOut, withoutElement } from './leave-out.ts'

/** With the sample of cards, which the demo and the tests write. */
const PRODUCT = /^(cli|src|producers|workers|bin\/sample)\//
const ROUNDS_MAX = 12

/** The feature, and every one that imports it. */
export function withThoseAbove(feature: FeatureName): FeatureName[] {
  const found: FeatureName[] = [feature]
  const names = Object.keys(FEATURES) as FeatureName[]
  for (const below of found)
    for (const name of names) {
      const { mayImport }: { mayImport: readonly FeatureName[] } = FEATURES[name]
      if (mayImport.includes(below) && !found.includes(name)) found.push(name)
    }
  return found
}

/** Knows the types of the whole product, so that a part is compiled sooner. */
const TYPES = 'types.json'

/**
 * Writes the product without these features into the empty folder `to`. `whole`: a folder with the whole product that was
 * compiled.
 */
export function writeWithout(features: readonly FeatureName[], to: string, whole?: string): void {
  for (const { path } of files) {
    const feature = featureOf(path)
    if (!PRODUCT.test(path) || (feature !== undefined && features.includes(feature))) continue
    mkdirSync(dirname(join(to, path)), { recursive: true })
    cpSync(join(root, path), join(to, path))
  }
  if (whole !== undefined) cpSync(join(whole, TYPES), join(to, TYPES))
  cpSync(join(root, 'package.json'), join(to, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(to, 'node_modules'))
  const compilerOptions = {
    noEmit: true,
    incremental: true,
    // A parameter that only a feature read stays.
    noUnusedParameters: false,
    tsBuildInfoFile: `./${TYPES}`,
    typeRoots: ['./node_modules/@types'],
  }
  const include = ['cli', 'src', 'producers', 'workers']
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include }
  writeFileSync(join(to, 'tsconfig.json'), JSON.stringify(config))
  for (const path of COMPOSITIONS.filter(composition => existsSync(join(to, composition)))) {
    const file = join(to, path)
    const isGone = (specifier: string) => specifier.startsWith('.') && !existsSync(resolve(dirname(file), specifier))
    writeFileSync(file, leaveOut(readFileSync(file, 'utf8'), isGone))
  }
}

/** A script of the tests that a test starts. */
const STARTED = /'(test\/[\w/.-]+\.ts)'/g

/** Adds these tests, with all that they import beside the product, to a tree of the product. */
export function addTests(tests: readonly string[], to: string): void {
  const known = new Map(files.map(file => [file.path, file]))
  const wanted = [
    ...tests,
    'vitest.config.ts',
    'test/run.ts',
    'bin/launch.mjs',
    'bin/tokenmill.mjs',
    'test/support/run/setup.ts',
    'test/support/run/end-children.ts',
  ]
  for (const path of wanted) {
    if (PRODUCT.test(path)) continue
    mkdirSync(dirname(join(to, path)), { recursive: true })
    cpSync(join(root, path), join(to, path))
    const file = known.get(path) ?? { path, text: '', imports: importsOf(readFileSync(join(root, path), 'utf8')) }
    const started = [...file.text.matchAll(STARTED)].flatMap(([, script = '']) => (known.has(script) ? script : []))
    for (const target of [...targetsOf(file), ...started]) if (!wanted.includes(target)) wanted.push(target)
  }
}

/**
 * Compiles the tree. Takes what doesn't compile any more out of compositions, round by round. Returns the errors of other
 * files, and those that don't go away.
 */
export async function compile(folder: string): Promise<string[]> {
  for (let round = 1; ; round += 1) {
    const errors = await typeErrors(folder)
    const others = errors.filter(({ path }) => !COMPOSITIONS.includes(path))
    if (others.length > 0) return others.map(({ text }) => text)
    if (errors.length === 0) return lostIn(folder)
    if (round === ROUNDS_MAX) return errors.map(({ text }) => text)
    for (const [path, own] of Map.groupBy(errors, error => error.path)) {
      const file = join(folder, path)
      let text = readFileSync(file, 'utf8')
      // From the end, so that the places before stay where they are. One element may have several errors.
      let from = text.length
      for (const at of own.map(({ line, column }) => placeOf(text, line, column)).sort((a, b) => b - a)) {
        if (at >= from) continue
        const left = withoutElement(text, at)
        from = firstDifference(text, left)
        text = left
      }
      writeFileSync(file, text)
    }
  }
}

/** What every product has, in compositions. If it were left out, the rest would compile for a wrong reason. */
const ENTRIES: Readonly<Record<string, readonly string[]>> = {
  'cli/commands/run.ts': ['runStart', 'runGateway', 'runWorkers', 'runScheduler'],
  'cli/main.ts': ['run'],
  'cli/process/gateway.ts': ['serveGateway'],
  'cli/process/scheduler.ts': ['startScheduler'],
  'cli/process/worker-process.ts': ['runWorkerProcess', 'openWorker'],
  'cli/process/workers.ts': ['startWorkers'],
  'producers/gateway/services.ts': ['gatewayServices'],
  'src/job/composition.ts': ['CATALOGUE'],
  'workers/composition.ts': ['openHandlers', 'openLoops'],
}

function lostIn(folder: string): string[] {
  return Object.entries(ENTRIES).flatMap(([path, names]) => {
    const text = readFileSync(join(folder, path), 'utf8')
    return names
      .filter(name => !new RegExp(`^export .*\\b${name}\\b`, 'm').test(text))
      .map(name => `${path} lost ${name}`)
  })
}

interface TypeError {
  path: string
  line: number
  column: number
  text: string
}

/** One checker: several would each work out most of the same types. */
const OPTIONS = ['--pretty', 'false', '--singleThreaded']

async function typeErrors(folder: string): Promise<TypeError[]> {
  const tsc = join(root, 'node_modules/.bin/tsc')
  const said = await new Promise<string>(done =>
    execFile(tsc, ['-p', folder, ...OPTIONS], { cwd: folder, maxBuffer: 1 << 28 }, (_, stdout, stderr) =>
      done(stdout + stderr),
    ),
  )
  return [...said.matchAll(/^(\S.*?)(?:\((\d+),(\d+)\))?: error .*$/gm)].map(([text, path = '', line, column]) => ({
    path: relative(folder, resolve(folder, path)),
    line: Number(line ?? 1),
    column: Number(column ?? 1),
    text,
  }))
}

function placeOf(text: string, line: number, column: number): number {
  const lines = text.split('\n')
  return lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1
}

function firstDifference(one: string, other: string): number {
  let at = 0
  while (at < other.length && one[at] === other[at]) at += 1
  return at
}
