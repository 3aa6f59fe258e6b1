import java.lang.reflect.Method;
import org.apache.skywalking.apm.agent.core.context.ContextCarrier;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.InstanceMethodsAroundInterceptor;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;
import org.apache.skywalking.apm.network.trace.component.ComponentsDefine;

public class TracedInterceptor implements InstanceMethodsAroundInterceptor {
    @Override
    public void beforeMethod(EnhancedInstance on, Method method, Object[] all, Class<?>[] types, MethodInterceptResult result) {
        AbstractSpan span = ContextManager.createEntrySpan("/checkout", new ContextCarrier());
        span.setComponent(ComponentsDefine.TOMCAT);
    }

    @Override
    public Object afterMethod(EnhancedInstance on, Method method, Object[] all, Class<?>[] types, Object returned) {
        ContextManager.stopSpan();
        return returned;
    }

    @Override
    public void handleMethodException(EnhancedInstance on, Method method, Object[] all, Class<?>[] types, Throwable thrown) {
        ContextManager.activeSpan().log(thrown);
    }
}
