// `npm run build:client`: emits the package `tokenmill-client` into clients/node/dist, which `npm pack` takes. The sources are
// the checkout's own; what is emitted needs nothing of the checkout.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PACKAGE = join(ROOT, 'clients/node')
const DIST = join(PACKAGE, 'dist')
const ENTRY = join(DIST, 'clients/node/exports')
/** Where a file names a module: in an import or export at the begin of a line, or in `import('…')`. */
const SPECIFIER = /(^import |^(?:import|export|\})[^'\n]* from |\bimport\()'([^']+)'/gm

const textOf = (path: string) => readFileSync(path, 'utf8')
const specifiersIn = (text: string) => [...text.matchAll(SPECIFIER)].map(found => String(found[2]))
const isRelative = (specifier: string) => specifier.startsWith('.')

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}

/** The files that are reached from the entry, and the packages that they name. `end`: `.js` or `.d.ts`. */
function reached(end: string): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const open = [`${ENTRY}${end}`]
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

rmSync(DIST, { recursive: true, force: true })
const compiler = join(ROOT, 'node_modules/.bin/tsc')
const { status } = spawnSync(compiler, ['-p', PACKAGE], { stdio: 'inherit' })
if (status !== 0) fail('tsc found errors')

const emitted = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).map(name => join(DIST, name))
// TypeScript turns `.ts` into `.js` in what runs, not in what declares.
for (const path of emitted.filter(name => name.endsWith('.d.ts')))
  writeFileSync(
    path,
    textOf(path).replace(SPECIFIER, (whole, _, name) => (isRelative(name) ? whole.replace(/\.ts'$/, ".js'") : whole)),
  )

const code = reached('.js')
const declarations = reached('.d.ts')
for (const path of emitted) if (path.endsWith('.d.ts') && !declarations.files.has(path)) rmSync(path)

const manifest = JSON.parse(textOf(join(PACKAGE, 'package.json')))
const known = new Set([...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)])
const unknown = [...code.packages].filter(name => !known.has(name))
if (unknown.length > 0) fail(`package.json lacks ${unknown.join(', ')}`)
const shown = [...declarations.packages].filter(name => name !== 'zod')
if (shown.length > 0) fail(`a declaration names ${shown.join(', ')}, which must not be in the surface`)
const unused = Object.keys(manifest.dependencies).filter(name => !code.packages.has(name))
if (unused.length > 0) fail(`nothing imports ${unused.join(', ')}`)

console.log(`${relative(ROOT, DIST)}: ${code.files.size} modules, ${declarations.files.size} declarations`)
