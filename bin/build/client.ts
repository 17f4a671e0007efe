// The package `tokenmill-client`. The sources are the checkout's own; what is emitted needs nothing of the checkout.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile } from './compile.ts'
import type { Needs } from './shrinkwrap.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PACKAGE = join(ROOT, 'clients/node')
const ENTRY = 'clients/node/exports'
/** What the package has beside what is emitted. */
const COPIED = ['package.json', 'README.md']
/** Where a file names a module: in an import or export at the begin of a line, or in `import('…')`. */
const SPECIFIER = /(^import |^(?:import|export|\})[^'\n]* from |\bimport\()'([^']+)'/gm

const textOf = (path: string) => readFileSync(path, 'utf8')
const specifiersIn = (text: string) => [...text.matchAll(SPECIFIER)].map(found => String(found[2]))
const isRelative = (specifier: string) => specifier.startsWith('.')

/** The files that are reached from the entry, and the packages that they name. `end`: `.js` or `.d.ts`. */
function reached(dist: string, end: string): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const open = [join(dist, `${ENTRY}${end}`)]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (files.has(path)) continue
    files.add(path)
    for (const specifier of specifiersIn(textOf(path))) {
      if (isRelative(specifier)) open.push(join(dirname(path), specifier.replace(/\.js$/, end)))
      else if (!specifier.startsWith('node:')) packages.add(specifier)
    }
  }
  return { files, packages }
}

/**
 * Emits the package into `folder`: its own in the checkout, or an empty one. Throws if the sources don't compile, or if the
 * package would not stand alone.
 */
export async function buildClient(folder = PACKAGE): Promise<void> {
  const dist = join(folder, 'dist')
  rmSync(dist, { recursive: true, force: true })
  if (folder !== PACKAGE) for (const name of COPIED) cpSync(join(PACKAGE, name), join(folder, name))
  await compile(PACKAGE, dist)
  const declared = readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.d.ts'))
    .map(name => join(dist, name))
  // TypeScript turns `.ts` into `.js` in what runs, not in what declares.
  for (const path of declared) writeFileSync(path, withoutTypeScript(textOf(path)))
  const code = reached(dist, '.js')
  const declarations = reached(dist, '.d.ts')
  for (const path of declared) if (!declarations.files.has(path)) rmSync(path)
  expectAlone(code.packages, declarations.packages)
}

/** The declarations of what a program imports, without comments: whatever changes here changes for those who use the package. */
export function surfaceIn(folder: string): string {
  const dist = join(folder, 'dist')
  const names = readdirSync(dist, { recursive: true, encoding: 'utf8' })
  return names
    .filter(name => SURFACE.some(pattern => pattern.test(name)))
    .sort()
    .map(name => `// ${name}\n${withoutComments(textOf(join(dist, name)))}`)
    .join('\n')
}
const SURFACE = [
  /^clients\/node\/(connect|connect-http|exports|log)\.d\.ts$/,
  /^producers\/.*(interface|error|errors|records)\.d\.ts$/,
  /^producers\/http\/messages\/.*\.d\.ts$/,
  /^src\/job\/(answer\/result|outcome|problem)\.d\.ts$/,
]

function withoutComments(declarations: string): string {
  return declarations.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*(\/\/.*)?\n/gm, '')
}

function withoutTypeScript(text: string): string {
  return text.replace(SPECIFIER, whole => (/'\./.test(whole) ? whole.replace(/\.ts'$/, ".js'") : whole))
}

/** Throws if the package needs what its manifest lacks, lists what it doesn't need, or shows a type of another package. */
function expectAlone(used: ReadonlySet<string>, shown: ReadonlySet<string>): void {
  const { dependencies, peerDependencies = {} } = JSON.parse(textOf(join(PACKAGE, 'package.json'))) as Needs & {
    peerDependencies?: Record<string, string>
  }
  const listed = Object.keys(dependencies)
  const wrong = {
    'package.json lacks': [...used].filter(name => !listed.includes(name) && !(name in peerDependencies)),
    'nothing imports': listed.filter(name => !used.has(name)),
    'the declarations name': [...shown].filter(name => name !== 'zod'),
  }
  for (const [what, names] of Object.entries(wrong))
    if (names.length > 0) throw new Error(`${what} ${names.join(', ')}`)
}
