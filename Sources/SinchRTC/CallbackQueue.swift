import Dispatch
import Synchronization

private let callbackQueue = Mutex<DispatchQueue>(.main)

/// Sets the queue on which every delegate is called; the main queue unless set. It should be a serial one.
///
/// A program without a run loop must serve the main queue with `dispatchMain()`, or set a queue of its own.
public func setCallbackQueue(queue: DispatchQueue) {
    callbackQueue.withLock { $0 = queue }
}

/// The queue on which delegates are called.
public func getCallbackQueue() -> DispatchQueue {
    callbackQueue.withLock { $0 }
}

/// Calls back on the callback queue.
func callBack(_ work: @escaping @Sendable () -> Void) {
    getCallbackQueue().async(execute: work)
}

/// A weak reference to a delegate that any thread may set and read.
///
/// Delegates need not be Sendable (their authors think in callbacks on one queue); the reference is only ever followed
/// on the callback queue.
final class DelegateReference<Delegate>: @unchecked Sendable {
    // @unchecked: `object` is guarded by `lock`; what it refers to is used on the callback queue only.
    private let lock = Mutex(())
    private weak var object: AnyObject?

    var value: Delegate? {
        get { lock.withLock { _ in object as? Delegate } }
        set { lock.withLock { _ in object = newValue as AnyObject? } }
    }
}
