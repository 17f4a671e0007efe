// OpenPGP is a peer that only clients with an OpenPGP capture key need.
import { ConfigError } from '../../src/config.ts'
import { absentPackage } from '../../src/missing-package.ts'

/** Throws the error; in place of a package that isn't installed, how to install it. */
export function nameThePeer(error: unknown): never {
  if (absentPackage(error) !== 'openpgp') throw error
  throw new ConfigError(
    'the client’s file names only an OpenPGP capture key, for which the package openpgp is needed: npm install openpgp@6',
  )
}
