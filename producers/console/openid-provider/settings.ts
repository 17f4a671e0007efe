// The settings of sign-in by OpenID: all of them, or none. The redirect URI is no setting: it follows from the console's origin.
import { z } from 'zod'
import { ConfigError } from '../../../src/config.ts'
import { isIssuer } from '../../../src/job/system/account.ts'

export const OPENID_ENVIRONMENT = {
  TOKENMILL_OIDC_ISSUER: z
    .string()
    .refine(isIssuer, 'must be the URL of the provider, without query, exactly as its ID tokens name it')
    .optional(),
  TOKENMILL_OIDC_CLIENT_ID: z
    .string()
    .regex(/^[!-~]{1,255}$/, 'must be 1 to 255 printable characters')
    .optional(),
  TOKENMILL_OIDC_CLIENT_SECRET_FILE: z.string().min(1).optional(),
  TOKENMILL_OIDC_NAME: z
    .string()
    .regex(/^[\p{L}\p{N}](?:[\p{L}\p{N} .&'-]{0,30}[\p{L}\p{N}])?$/u, 'must be a name of at most 32 letters and digits')
    .optional(),
}

export interface OpenIdSettings {
  issuer: string
  clientId: string
  secretFile: string
  /** The word on the button. */
  name: string
}

type Read = z.infer<z.ZodObject<typeof OPENID_ENVIRONMENT>>

/** Undefined if none is set. Throws `ConfigError` if some are missing. */
export function openIdSettingsOf(read: Read): OpenIdSettings | undefined {
  const { TOKENMILL_OIDC_ISSUER: issuer, TOKENMILL_OIDC_CLIENT_ID: clientId } = read
  const { TOKENMILL_OIDC_CLIENT_SECRET_FILE: secretFile, TOKENMILL_OIDC_NAME: name = 'OpenID' } = read
  if (issuer && clientId && secretFile) return { issuer, clientId, secretFile, name }
  const given = Object.keys(OPENID_ENVIRONMENT).filter(key => read[key as keyof Read] !== undefined)
  if (given.length === 0) return undefined
  const missing = Object.keys(OPENID_ENVIRONMENT).find(key => read[key as keyof Read] === undefined)
  throw new ConfigError(`${missing}: must be set, because ${given[0]} is; sign-in by OpenID needs both`)
}
