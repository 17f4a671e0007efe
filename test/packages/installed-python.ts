// The Python package as a stranger has it: installed by pip, offline, into an empty folder outside of the checkout. Tests that
// need it are skipped if Python or a module is missing; with REQUIRE_PYTHON=1 the run fails (test/support/run/setup.ts).
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Child, childEnvironment, type StartOptions, startScript } from '../support/process.ts'

const SOURCE = fileURLToPath(new URL('../../clients/python', import.meta.url))

/** Debian's own may lie behind another Python that lacks the modules. */
const PYTHONS = ['python3', '/usr/bin/python3']
const MODULES = ['cryptography', 'pip', 'setuptools', 'wheel']
const CHECK = `import importlib.util, sys
sys.exit(sys.version_info < (3, 10) or any(importlib.util.find_spec(name) is None for name in ${JSON.stringify(MODULES)}))`

function isUsable(python: string): boolean {
  try {
    execFileSync(python, ['-c', CHECK], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

let found: { python: string | undefined } | undefined

function findPython(): string | undefined {
  found ??= { python: PYTHONS.find(isUsable) }
  return found.python
}

/** What is missing, in words. */
export function missingPython(): string[] {
  if (findPython() !== undefined) return []
  const packages = MODULES.map(name => `python3-${name}`).join(', ')
  return [`no Python 3.10 or newer with ${MODULES.join(', ')} (Debian: ${packages})`]
}

export interface InstalledPython {
  /** An empty folder for the test. */
  folder: string
  /** Runs a program with the package, by its path. */
  start(program: string, words?: string[], options?: Pick<StartOptions, 'env' | 'cwd'>): Child
  remove(): void
}

export async function installPython(): Promise<InstalledPython> {
  const python = findPython() ?? 'python3'
  const place = mkdtempSync(join(tmpdir(), 'python-'))
  const [source, target, folder] = [join(place, 'source'), join(place, 'target'), join(place, 'project')]
  mkdirSync(folder)
  // pip builds in the folder of the sources.
  cpSync(SOURCE, source, { recursive: true })
  const offline = ['--no-build-isolation', '--no-deps', '--no-index', '--disable-pip-version-check', '--quiet']
  const env = childEnvironment({ PIP_ROOT_USER_ACTION: 'ignore' })
  await promisify(execFile)(python, ['-m', 'pip', 'install', ...offline, '--target', target, '.'], { cwd: source, env })
  return {
    folder,
    start: (program, words = [], { env, cwd = folder } = {}) =>
      startScript(program, words, {
        node: python,
        cwd,
        env: {
          PYTHONPATH: target,
          PYTHONDONTWRITEBYTECODE: '1',
          ...env,
        },
      }),
    remove: () => rmSync(place, { recursive: true, force: true }),
  }
}
