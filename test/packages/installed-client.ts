// The package tokenmill-client as a stranger has it: packed, and installed by npm into an empty project outside of the checkout.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildClient } from '../../bin/build/client.ts'
import { type Child, childEnvironment, type StartOptions, startScript } from '../support/process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The oldest Node that the package runs on, as npm has it. */
const OLDEST = '22.23.5'

export interface InstalledClient {
  project: string
  /** The Node versions that programs are run with: that of the tests, and the oldest one where npm has it for this system. */
  nodes: string[]
  /** Writes a program into the project, and starts it there. */
  start(name: string, program: string, options?: Pick<StartOptions, 'env' | 'node' | 'nodeArgs' | 'cwd'>): Child
  remove(): void
}

export async function installClient(): Promise<InstalledClient> {
  const place = mkdtempSync(join(tmpdir(), 'client-'))
  const [staged, project] = [join(place, 'staged'), join(place, 'project')]
  for (const folder of [staged, project]) mkdirSync(folder)
  const env = childEnvironment({ npm_config_prefer_offline: 'true', npm_config_update_notifier: 'false' })
  const npm = async (words: string[], cwd: string) => (await promisify(execFile)('npm', words, { cwd, env })).stdout
  await buildClient(staged)
  const tarball = (await npm(['pack', '--silent', '--pack-destination', project], staged)).trim()
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const oldest = `node-linux-${process.arch}`
  const manifest = {
    name: 'shop',
    private: true,
    type: 'module',
    dependencies: { 'tokenmill-client': `file:${tarball}` },
    devDependencies: { '@types/node': devDependencies['@types/node'] },
    optionalDependencies: process.platform === 'linux' ? { [oldest]: OLDEST } : {},
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
  await npm(['install', '--ignore-scripts', '--no-audit', '--no-fund'], project)
  const old = join(project, 'node_modules', oldest, 'bin/node')
  return {
    project,
    nodes: [process.execPath, ...(existsSync(old) ? [old] : [])],
    start(name, program, options = {}) {
      const path = join(project, name)
      writeFileSync(path, program)
      return startScript(path, [], { cwd: project, ...options })
    },
    remove: () => rmSync(place, { recursive: true, force: true }),
  }
}

/** The program of docs/upstream.md whose first line names this file. */
export function programOf(name: string): string {
  const page = readFileSync(join(root, 'docs/upstream.md'), 'utf8')
  const blocks = [...page.matchAll(/^```(?:js|python)\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
  const found = blocks.filter(code => code.startsWith(`// ${name}:`) || code.startsWith(`# ${name}:`))
  if (found.length !== 1) throw new Error(`docs/upstream.md has ${found.length} programs named ${name}`)
  return found[0] as string
}
