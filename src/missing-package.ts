// Packages that only a feature needs are loaded when the feature is first used. An installation may lack them
// (`npm install --omit=optional`): then the error of Node's loader becomes a line that names the package to install.
// Nothing is installed here.
import { readManifest } from './version.ts'

/** What Node says of a package that `import` or `require` doesn't find. */
const NOT_FOUND = /^Cannot find (?:package|module) '((?:@[^/']+\/)?[^/']+)/

/** The package whose absence `error` reports; undefined for any other error. */
export function absentPackage(error: unknown): string | undefined {
  const { code, message } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined
  return NOT_FOUND.exec(message ?? '')?.[1]
}

/** How to install the package whose absence `error` reports; undefined for any other error. */
export function missingPackage(error: unknown): string | undefined {
  const name = absentPackage(error) ?? ''
  const { dependencies, optionalDependencies } = readManifest()
  const version = optionalDependencies[name] ?? dependencies[name]
  if (version === undefined) return undefined
  return `this needs the package ${name}, which is not installed; run \`npm install ${name}@${version}\` where tokenmill is installed`
}
