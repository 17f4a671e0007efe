// Whether an S3 bucket has object lock: objects with a retention date in COMPLIANCE mode can't be removed before that
// date, not even by the account's root user.
import { Fault } from '../../errors.ts'
import { openClient } from './s3.ts'

/** Throws `Fault('files_away')` if the bucket can't be asked. */
export async function hasObjectLock(options: { bucket: string; endpoint?: string | undefined }): Promise<boolean> {
  const { client, sdk } = await openClient(options.endpoint)
  try {
    const found = await client.send(new sdk.GetObjectLockConfigurationCommand({ Bucket: options.bucket }))
    return found.ObjectLockConfiguration?.ObjectLockEnabled === 'Enabled'
  } catch (error) {
    if (error instanceof Error && error.name === 'ObjectLockConfigurationNotFoundError') return false
    throw new Fault('files_away', error)
  } finally {
    client.destroy()
  }
}
